"""Verbs with their English counterpart, the objects they accept and how their present is rendered.

kind « event » turns a bare French present into the English progressive; « state » keeps it simple.
"""

from typing import NamedTuple

from .nouns import of


class Verb(NamedTuple):
    fr: str
    en: str
    kind: str
    objects: tuple     # noun classes
    dets: tuple        # determiners that sound natural with those objects


# french | english | kind | object classes | determiners of the object
TRANSITIVE = """
manger | eat | event | fruit dish food | indef part
boire | drink | event | drink | part
préparer | make | event | cooked | indef
couper | cut | event | cut | def
goûter | taste | event | dish food fruit | def dem
lire | read | event | readable | indef def dem poss
écrire | write | event | text-letter | indef
acheter | buy | event | clothes fruit bought furniture car bike device food pair pastry | indef def dem part
vendre | sell | event | car bike furniture | poss def
porter | wear | event | clothes pair | indef poss dem
essayer | try on | event | clothes pair | dem def
mettre | put on | event | clothes pair | poss
conduire | drive | event | driven | def dem poss
prendre | take | event | ride tool | def dem
regarder | watch | event | watched | def dem indef
écouter | listen to | event | song | def dem indef
chercher | look for | event | lost clothes pair text room-place animal | poss def
trouver | find | event | tool clothes text | indef poss
perdre | lose | event | lost | poss
oublier | forget | event | lost clothes text | poss def
garder | keep | event | tool text gift | def dem
apporter | bring | event | tool drink text gift fruit dish | indef def part
utiliser | use | event | tool-used | def poss dem
ouvrir | open | event | opening box | def
fermer | close | event | opening shut | def
nettoyer | clean | event | room car | def poss
laver | wash | event | clothes car fruit | def poss
réparer | repair | event | car bike device | def poss dem
casser | break | event | fragile | def dem poss
cacher | hide | event | hidden | def
comprendre | understand | state | idea text-message | def dem
expliquer | explain | event | idea | def dem
corriger | correct | event | corrected | def poss
visiter | visit | event | sights | def dem
choisir | choose | event | clothes gift chosen furniture | indef dem def
peindre | paint | event | painted | def
dessiner | draw | event | animal drawn | indef def
jeter | throw away | event | tool text pair | def dem
allumer | turn on | event | device lamp | def
éteindre | turn off | event | device lamp | def
vouloir | want | state | clothes fruit dish drink bike gift pet | indef part dem
adorer | love | state | show text writing building | dem poss
nourrir | feed | event | animal | def poss
signer | sign | event | signed | def
louer | rent | event | rented | indef dem
traduire | translate | event | text-message | def dem
finir | finish | event | finished | poss def
commencer | start | event | finished | poss def
préparer | prepare for | event | event-prepared | poss def
"""

# Object sets that are no class of their own: named lists of lemmas.
SETS = {
    "driven": "voiture camion bus taxi",
    "readable": "livre journal lettre roman magazine poème article message histoire",
    "watched": "film match spectacle émission concert",
    "text-letter": "lettre roman poème article message histoire",
    "song": "chanson concert émission",
    "room-place": "poste pharmacie gare",
    "box": "boîte bouteille",
    "cut": "pomme orange poire banane tomate carotte oignon pêche pain fromage viande poisson poulet jambon "
           "gâteau tarte pizza",
    "chosen": "montre stylo crayon sac valise parapluie couteau assiette ballon bague cahier verre tasse "
              "livre roman magazine dictionnaire",
    "bought": "montre stylo crayon sac valise parapluie couteau assiette ballon jouet bague cahier verre "
              "tasse fourchette cuillère portefeuille outil bouteille boîte cadeau fleur carte jeu",
    "cooked": "gâteau sandwich omelette tarte crêpe pizza",
    "lost": "clé montre stylo crayon sac valise parapluie passeport portefeuille bague ballon cahier",
    "tool-used": "stylo crayon couteau outil fourchette ordinateur téléphone",
    "fragile": "verre tasse assiette miroir lampe montre bouteille jouet",
    "text-message": "lettre message article livre poème phrase mot",
    "corrected": "exercice erreur lettre phrase réponse",
    "sights": "musée château église ville village île",
    "painted": "porte chambre cuisine fenêtre salon",
    "drawn": "fleur maison bateau",
    "hidden": "cadeau photo carte lettre clé bague passeport portefeuille boîte jouet",
    "pastry": "gâteau sandwich biscuit croissant œuf tarte pizza",
    "shut": "boîte",
    "pet": "chien chat cheval oiseau lapin hamster tortue",
    "lamp": "lampe",
    "signed": "lettre carte",
    "rented": "appartement maison voiture vélo bateau",
    "finished": "livre lettre exercice leçon travail projet roman",
    "event-prepared": "voyage examen fête réunion mariage",
}

# Verbs with a human object; the pronouns le/la/les are then him/her/them.
PERSON = """
connaître | know | state
aimer | love | state
aider | help | event
attendre | wait for | event
appeler | call | event
inviter | invite | event
remercier | thank | event
écouter | listen to | event
chercher | look for | event
détester | hate | state
accompagner | accompany | event
rencontrer | meet | event
suivre | follow | event
reconnaître | recognize | state
comprendre | understand | state
saluer | greet | event
voir | see | state
croire | believe | state
"""

INTRANSITIVE = """
dormir | sleep
travailler | work
étudier | study
chanter | sing
danser | dance
nager | swim
courir | run
marcher | walk
pleurer | cry
rire | laugh
sourire | smile
rêver | dream
jouer | play
cuisiner | cook
voyager | travel
parler | talk
tousser | cough
fumer | smoke
"""

REFLEXIVE = """
se lever | get up
se coucher | go to bed
se réveiller | wake up
s'habiller | get dressed
se reposer | rest
se promener | take a walk
s'amuser | have fun
se dépêcher | hurry
se raser | shave
se doucher | take a shower
se baigner | go swimming
"""

# Movement and change verbs that take être.
MOTION = """
partir | leave
arriver | arrive
sortir | go out
rentrer | go home
revenir | come back
venir | come
tomber | fall
rester | stay
"""

GIVING = """
donner | give
offrir | offer
prêter | lend
envoyer | send
montrer | show
apporter | bring
rendre | return
"""

SAYING = """
parler | talk to
téléphoner | call
répondre | answer
écrire | write to
obéir | obey
"""

OTHER = """
être | be
avoir | have
aller | go
faire | do
pouvoir | can
devoir | must
savoir | know
falloir | be necessary
dire | say
penser | think
espérer | hope
préférer | prefer
habiter | live
vivre | live
apprendre | learn
enseigner | teach
coûter | cost
payer | pay
gagner | win
quitter | leave
naître | be born
mourir | die
devenir | become
entrer | enter
monter | go up
descendre | go down
s'appeler | be called
se souvenir | remember
se tromper | be wrong
s'ennuyer | be bored
plaire | please
manquer | be missed
pleuvoir | rain
neiger | snow
retourner | go back
demander | ask
raconter | tell
entendre | hear
réussir | succeed
arrêter | stop
continuer | continue
recevoir | receive
promettre | promise
mentir | lie
tenir | hold
"""


def _pairs(table):
    return tuple(tuple(part.strip() for part in line.split("|")) for line in table.strip().splitlines())


def _transitive():
    verbs = []
    for fr, en, kind, objects, dets in _pairs(TRANSITIVE):
        nouns = []
        for cls in objects.split():
            if cls in SETS:
                wanted = SETS[cls].split()
                nouns += [n for n in of(*ALL_CLASSES) if n.lemma in wanted]
            else:
                nouns += of(cls)
        verbs.append(Verb(fr, en, kind, tuple(dict.fromkeys(nouns)), tuple(dets.split())))
    return tuple(verbs)


ALL_CLASSES = ("fruit dish food drink text writing clothes pair car ride bike furniture tool device gift "
               "building "
               "outdoors room opening idea show event resource animal").split()
TRANSITIVES = _transitive()
PERSON_VERBS = tuple(Verb(fr, en, kind, (), ()) for fr, en, kind in _pairs(PERSON))
INTRANSITIVES = tuple(Verb(fr, en, "event", (), ()) for fr, en in _pairs(INTRANSITIVE))
REFLEXIVES = tuple(Verb(fr, en, "event", (), ()) for fr, en in _pairs(REFLEXIVE))
MOTIONS = tuple(Verb(fr, en, "event", (), ()) for fr, en in _pairs(MOTION))
GIVINGS = tuple(Verb(fr, en, "event", (), ()) for fr, en in _pairs(GIVING))
SAYINGS = tuple(Verb(fr, en, "event", (), ()) for fr, en in _pairs(SAYING))
LEMMAS = sorted({pair[0] for table in (TRANSITIVE, PERSON, INTRANSITIVE, REFLEXIVE, MOTION, GIVING, SAYING,
                                       OTHER)
                 for pair in _pairs(table)})


def named(pool, *lemmas):
    """The verbs of a pool with the given lemmas, in the order of the pool."""
    return tuple(verb for verb in pool if verb.fr in lemmas)


def among(pool, lemmas):
    """The same, with the lemmas in one string; reflexive verbs need named()."""
    return named(pool, *lemmas.split())

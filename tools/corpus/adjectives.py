"""Adjectives: form, gloss, position and the nouns they describe.

A line reads: masculine[/feminine] | english | before or after the noun | classes or nouns; « = » marks
    an invariable one.
"""

import functools
from typing import NamedTuple


class Adjective(NamedTuple):
    lemma: str
    fem: str
    en: str
    before: bool
    classes: tuple


GROUPS = {
    "things": "clothes car bike furniture tool device",
    "colored": "clothes pair furniture voiture vélo moto stylo crayon sac valise parapluie ballon "
               "tasse assiette boîte bouteille",
    "furred": "chien chat cheval oiseau vache lapin souris poule",
    "eaten": "food dish",
    "places": "building outdoors room",
    "people": "role kin",
}

TABLE = """
beau/belle | beautiful | before | clothes voiture outdoors animal show gift maison appartement église château
    musée théâtre hôtel mairie bibliothèque
joli | pretty | before | clothes outdoors gift chambre cuisine salon maison
nouveau/nouvelle | new | before | things pair building text
vieux/vieille | old | before | things building text animal
grand | big | before | car furniture building room outdoors animal
petit | small | before | car furniture building room outdoors animal tool
gros/grosse | fat | before | animal
bon/bonne | good | before | eaten drink fruit livre roman article histoire film chanson concert match
    spectacle émission question réponse idée
mauvais | bad | before | film match spectacle émission question réponse idée concert
long/longue | long | before | voyage examen réunion cours lettre roman histoire article message film phrase
rouge | red | after | colored
bleu | blue | after | colored
vert | green | after | colored
noir | black | after | colored furred
blanc/blanche | white | after | colored furred
gris | gray | after | colored furred
jaune | yellow | after | colored
marron/= | brown | after | colored
violet/violette | purple | after | clothes stylo sac parapluie
rose | pink | after | clothes stylo sac parapluie
cher | expensive | after | clothes voiture bike furniture device chaussure botte bague montre
lourd | heavy | after | armoire table canapé lit fauteuil valise sac boîte
léger | light | after | valise sac vélo parapluie veste
propre | clean | after | clothes chaussure chaussette room voiture verre tasse assiette fourchette
    cuillère couteau
sale | dirty | after | clothes chaussure chaussette room voiture verre tasse assiette fourchette cuillère
    couteau
moderne | modern | after | furniture car device maison appartement école gare hôpital banque supermarché
    restaurant cinéma théâtre musée bibliothèque aéroport hôtel piscine stade usine magasin université
confortable | comfortable | after | chaise lit canapé fauteuil chaussure botte voiture appartement
    chambre hôtel
élégant | elegant | after | clothes pair furniture
pratique | practical | after | sac couteau outil dictionnaire bike ordinateur téléphone
rapide | fast | after | voiture bike train bateau ordinateur
lent | slow | after | train bus bateau ordinateur
calme | quiet | after | parc jardin plage village rue place lac île chambre hôtel bibliothèque
bruyant | noisy | after | rue place ville restaurant marché usine bureau
dangereux | dangerous | after | rue forêt montagne rivière plage
célèbre | famous | after | musée château église chanson film roman ville restaurant théâtre acteur
    chanteuse écrivain poème
intéressant | interesting | after | livre roman article journal magazine histoire film concert spectacle
    émission question réponse idée leçon projet voyage cours
ennuyeux | boring | after | livre roman article film concert spectacle émission cours réunion leçon match
amusant | funny | after | histoire film livre spectacle émission
triste | sad | after | histoire film livre roman chanson lettre poème
facile | easy | after | question exercice problème leçon phrase mot examen règle
difficile | difficult | after | question exercice problème leçon phrase mot examen règle projet
important | important | after | question réponse problème règle leçon lettre message réunion examen
    rendez-vous match
simple | simple | after | question réponse idée exercice règle phrase
étrange | strange | after | question réponse idée histoire lettre message film chanson
court | short | after | lettre message article réunion voyage film robe jupe phrase
délicieux | delicious | after | eaten fruit
frais/fraîche | fresh | after | fruit poisson lait pain œuf
sucré | sweet | after | fraise orange poire pêche abricot cerise
chaud | hot | after | thé café lait soupe
froid | cold | after | eau lait bière limonade café soupe
français | French | after | livre roman journal magazine film chanson fromage vin pain voiture acteur
    actrice chanteuse écrivain
anglais | English | after | livre roman journal magazine film chanson thé acteur actrice chanteuse écrivain
italien | Italian | after | film chanson voiture restaurant vin fromage acteur actrice
espagnol | Spanish | after | livre roman journal film chanson vin jambon acteur actrice
fragile | fragile | after | verre tasse assiette miroir lampe jouet
utile | useful | after | outil dictionnaire livre ordinateur idée réponse cahier
vide | empty | after | chambre boîte bouteille verre restaurant rue sac valise
rond | round | after | table tapis miroir
carré | square | after | table tapis miroir boîte
gratuit | free | after | concert spectacle cours journal
intelligent | intelligent | trait | people animal
gentil/gentille | kind | trait | people animal
patient | patient | trait | people
timide | shy | trait | people
drôle | funny | trait | people
courageux | brave | trait | people animal
paresseux | lazy | trait | people animal
curieux | curious | trait | people animal
sérieux | serious | trait | people
généreux | generous | trait | people
poli | polite | trait | people
sportif | athletic | trait | people
bavard | talkative | trait | people
jeune | young | trait | people animal
riche | rich | trait | people
pauvre | poor | trait | people
fort | strong | trait | people animal
mince | thin | trait | people
honnête | honest | trait | people
sympathique | nice | trait | people
heureux | happy | state | people
content | pleased | state | people
fatigué | tired | state | people animal
malade | sick | state | people animal
inquiet/inquiète | worried | state | people
occupé | busy | state | people
prêt | ready | state | people
fier/fière | proud | state | people
jaloux/jalouse | jealous | state | people
seul | alone | state | people
surpris | surprised | state | people
nerveux | nervous | state | people
ouvert | open | openness | building opening
fermé | closed | openness | building opening
meilleur | best | superlative | show
dernier | last | rank | time
prochain | next | rank | time
premier | first | rank | time
"""


def _parse():
    adjectives = []
    # An indented line continues the one above it.
    for line in TABLE.strip().replace("\n    ", " ").splitlines():
        form, en, kind, classes = [field.strip() for field in line.split("|")]
        lemma, _, fem = form.partition("/")
        expanded = []
        for cls in classes.split():
            expanded += GROUPS.get(cls, cls).split(" ")
        adjectives.append((kind, Adjective(lemma, fem, en, kind == "before", tuple(expanded))))
    return adjectives


_ALL = _parse()
ADJECTIVES = tuple(adjective for _, adjective in _ALL)
ATTRIBUTIVE = tuple(adjective for kind, adjective in _ALL if kind in ("before", "after"))
COLORS = tuple(a for a in ATTRIBUTIVE if a.lemma in "rouge bleu vert noir blanc gris jaune marron".split())
TRAITS = tuple(adjective for kind, adjective in _ALL if kind == "trait")
STATES = tuple(adjective for kind, adjective in _ALL if kind == "state")


# A class suits, but not every noun in it.
MISFITS = frozenset((("château", "nouveau"), ("château", "petit"), ("église", "nouveau"),
                     ("passeport", "petit"), ("miroir", "rouge"), ("miroir", "vert"),
                     ("miroir", "jaune"), ("oiseau", "vieux"), ("verre", "vieux"),
                     ("bouteille", "vieux")))


@functools.lru_cache(maxsize=None)
def suiting(noun):
    """Attributive adjectives that suit a noun, in table order."""
    return tuple(a for a in ATTRIBUTIVE if (noun.cls in a.classes or noun.lemma in a.classes)
                 and (noun.lemma, a.lemma) not in MISFITS)


def adjective(lemma):
    return next(a for a in ADJECTIVES if a.lemma == lemma)

"""Nouns by selectional class: each class is what some verbs and adjectives accept.

An entry reads « french gender english »; « ~ » gives a plural that the rules do not.
"""

import functools
import re
from typing import NamedTuple

from . import english, french


class Noun(NamedTuple):
    lemma: str
    gender: str
    en: str
    cls: str
    plural: str
    en_plural: str


TABLE = {
    "kin": """père m father; mère f mother; frère m brother; sœur f sister; oncle m uncle; tante f aunt;
        cousin m cousin; cousine f cousin; grand-père~grands-pères m grandfather; fils m son;
        grand-mère~grands-mères f grandmother; mari m husband; ami m friend; amie f friend;
        collègue m colleague; voisin m neighbor; voisine f neighbor; patron m boss""",
    "role": """médecin m doctor; professeur m teacher; infirmière f nurse; boulanger m baker;
        dentiste m dentist; boulangère f baker; facteur m mailman~mailmen; avocat m lawyer;
        avocate f lawyer; serveur m waiter; policier m policeman~policemen; serveuse f waitress;
        chanteuse f singer; acteur m actor; actrice f actress; cuisinier m cook; journaliste m journalist;
        ingénieur m engineer; secrétaire f secretary; coiffeur m hairdresser; directrice f manager;
        étudiant m student; étudiante f student; élève m pupil; touriste m tourist;
        enfant m child~children; homme m man~men; femme f woman~women; garçon m boy; fille f girl;
        bébé m baby; client m customer; pompier m firefighter; musicien m musician; écrivain m writer""",
    "animal": """chien m dog; chat m cat; cheval~chevaux m horse; oiseau m bird; vache f cow;
        lapin m rabbit; souris f mouse~mice; cochon m pig; canard m duck; poule f hen; hamster m hamster;
        tortue f turtle""",
    "fruit": """pomme f apple; orange f orange; poire f pear; banane f banana; fraise f strawberry;
        cerise f cherry; tomate f tomato~tomatoes; carotte f carrot; oignon m onion; pêche f peach;
        abricot m apricot; haricot m bean""",
    "dish": """gâteau m cake; sandwich m sandwich; biscuit m cookie; croissant m croissant;
        omelette f omelet; œuf m egg; tarte f pie; crêpe f pancake; pizza f pizza""",
    "food": """pain m bread; fromage m cheese; viande f meat; poisson m fish; riz m rice; beurre m butter;
        confiture f jam; salade f salad; soupe f soup; poulet m chicken; chocolat m chocolate;
        miel m honey; jambon m ham; glace f ice cream""",
    "drink": """eau f water; vin m wine; bière f beer; lait m milk; thé m tea; café m coffee;
        limonade f lemonade""",
    "spice": """sucre m sugar; sel m salt; poivre m pepper; huile f oil; farine f flour""",
    "text": """livre m book; journal m newspaper; lettre f letter; roman m novel; magazine m magazine;
        dictionnaire m dictionary""",
    "writing": """poème m poem; article m article; message m message; histoire f story""",
    "clothes": """chemise f shirt; robe f dress; manteau m coat; chapeau m hat; jupe f skirt;
        pull m sweater; veste f jacket; écharpe f scarf~scarves; cravate f tie; ceinture f belt;
        uniforme m uniform""",
    "pair": """chaussure f shoe; gant m glove; chaussette f sock; botte f boot""",
    "car": """voiture f car; camion m truck""",
    "ride": """train m train; avion m plane; bateau m boat; métro m subway; bus m bus; taxi m taxi""",
    "bike": """vélo m bike; moto f motorcycle""",
    "furniture": """table f table; chaise f chair; lit m bed; armoire f wardrobe; canapé m sofa;
        lampe f lamp; tapis m rug; miroir m mirror; étagère f shelf~shelves; fauteuil m armchair;
        horloge f clock""",
    "tool": """clé f key; montre f watch; stylo m pen; crayon m pencil; sac m bag; valise f suitcase;
        parapluie m umbrella; passeport m passport; portefeuille m wallet; couteau m knife;
        fourchette f fork; cuillère f spoon; assiette f plate; ballon m ball; jouet m toy; bague f ring;
        cahier m notebook; verre m glass; tasse f cup; bouteille f bottle; boîte f box; outil m tool""",
    "device": """téléphone m phone; ordinateur m computer; radio f radio; télévision f television""",
    "gift": """cadeau m gift; fleur f flower; photo f photo; carte f card; jeu m game""",
    "building": """maison f house; appartement m apartment; école f school; gare f station;
        hôpital m hospital; banque f bank; marché m market; supermarché m supermarket;
        boulangerie f bakery; restaurant m restaurant; cinéma m movie theater; théâtre m theater;
        musée m museum; bibliothèque f library; église f church; pharmacie f pharmacy; aéroport m airport;
        hôtel m hotel; piscine f swimming pool; stade m stadium; usine f factory; ferme f farm;
        château m castle; magasin m store; université f university; poste f post office;
        mairie f town hall""",
    "outdoors": """parc m park; jardin m garden; plage f beach; forêt f forest; montagne f mountain;
        lac m lake; rivière f river; village m village; ville f city; île f island; pont m bridge;
        rue f street; place f square""",
    "room": """cuisine f kitchen; chambre f bedroom; salon m living room;
        salle de bains~salles de bains f bathroom; bureau m office; cave f cellar; garage m garage""",
    "opening": """porte f door; fenêtre f window""",
    "body": """tête f head; dos m back; ventre m stomach; dent f tooth~teeth; jambe f leg; bras m arm;
        main f hand; pied m foot~feet; gorge f throat; œil~yeux m eye; oreille f ear; genou m knee;
        épaule f shoulder; cheveu m hair~hair""",
    "idea": """question f question; réponse f answer; problème m problem; idée f idea; exercice m exercise;
        leçon f lesson; projet m project; erreur f mistake; phrase f sentence; mot m word; règle f rule""",
    "show": """film m movie; chanson f song; concert m concert; match m game; spectacle m show;
        émission f program""",
    "event": """voyage m trip; examen m exam; fête f party; réunion f meeting; cours m class;
        rendez-vous m appointment; anniversaire m birthday; mariage m wedding""",
    "resource": """argent m money; temps m time; courage m courage; chance f luck; aide f help;
        repos m rest; patience f patience; travail m work""",
    "time": """jour m day; semaine f week; mois m month; an m year; heure f hour; minute f minute;
        matin m morning; soir m evening; nuit f night; été m summer; hiver m winter; printemps m spring;
        automne m fall; année f year""",
    "sky": """soleil m sun; pluie f rain; neige f snow; vent m wind; ciel m sky""",
    "school": """mathématique f mathematics; musique f music; géographie f geography; physique f physics;
        chimie f chemistry""",
    "measure": """kilo m kilo; litre m liter; morceau m piece; tranche f slice; euro m euro""",
}


def _parse():
    nouns = []
    for cls, text in TABLE.items():
        for entry in text.split(";"):
            match = re.match(r"^(\S.*?) ([mf]) (.+)$", " ".join(entry.split()))
            fr, gender, en = match.groups()
            fr, _, fr_plural = fr.partition("~")
            en, _, en_plural = en.partition("~")
            nouns.append(Noun(fr, gender, en, cls, fr_plural or french.plural(fr),
                              en_plural or english.plural(en)))
    return tuple(nouns)


NOUNS = _parse()
FRIGHTENING = tuple(noun for noun in NOUNS
                    if noun.lemma in "chien chat cheval oiseau vache souris cochon".split())


@functools.lru_cache(maxsize=None)
def of(*classes):
    """Nouns of the given classes, in table order."""
    return tuple(noun for noun in NOUNS if noun.cls in classes)


def noun(lemma, cls=None):
    """One noun by its lemma (and class, when the lemma is in several)."""
    return next(n for n in NOUNS if n.lemma == lemma and cls in (None, n.cls))

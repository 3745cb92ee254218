"""Patterns of being and having: description, identity, possession, existence, place, likes.

Adjectives agree with what they describe; possessives follow the subject, so his and her are never guessed.
"""

from . import adjectives, french, nouns, words
from .grammar import UNWANTED, Phrase, clause, it_for, noun_phrase, pronoun_for, suits
from .registry import pattern
from .verbs import TRANSITIVES

IT = Phrase("ce", "it")
GOODS = nouns.of("clothes", "car", "bike", "furniture", "tool", "device", "text", "gift", "animal")


def agreed(adjective, who):
    return french.agree(adjective.lemma, who.gender, who.number, adjective.fem)


@pattern(topic=True)
def person_trait(g):
    s, a = g.subject(young=True), g.pick(adjectives.TRAITS)
    fr, en = g.pick((("", ""), ("très", "very"), ("assez", "quite"), ("vraiment", "really")))
    neg = "pas" if not fr and g.chance(0.4) else ""
    tenses = ("impf", "past") if g.chance(0.25) else ("pres", "pres")
    return clause(s, "être", "be", tenses, ((fr + " " + agreed(a, s)).strip(), (en + " " + a.en).strip()),
                  neg) + (".",)


@pattern(topic=True)
def person_state(g):
    s, a = g.subject(young=True), g.pick(adjectives.STATES)
    fr, en = g.pick((("aujourd'hui", "today"), ("ce soir", "tonight"), ("maintenant", "now"), ("", "")))
    tenses = ("pres", "pres")
    if g.chance(0.35):
        (fr, en), tenses = g.pick((("hier", "yesterday"), ("ce matin", "this morning"),
                                   ("hier soir", "last night"))), \
            ("impf", "past")
    neg = g.pick(("", "", "pas", "plus"))
    if neg == "plus":
        fr, en, tenses = "", "", ("pres", "pres")
    if a.lemma in ("fier", "surpris") and (neg or tenses[0] == "pres" and fr):
        return None        # these do not come and go with the hour
    return clause(s, "être", "be", tenses, ((agreed(a, s) + " " + fr).strip(), (a.en + " " + en).strip()),
                  neg) + (".",)


@pattern(topic=True)
def two_traits(g):
    s = g.subject(young=True)
    a, b = g.pick(adjectives.TRAITS), g.pick(adjectives.TRAITS)
    neutral = ("jeune", "mince", "pauvre", "curieux")
    if a == b or a.lemma in neutral or b.lemma in neutral or {a.lemma, b.lemma} == {"timide", "bavard"}:
        return None
    good = ("intelligent gentil patient drôle courageux sérieux généreux poli sportif riche fort honnête "
            "sympathique").split()
    link = ("et", "and") if (a.lemma in good) == (b.lemma in good) else ("mais", "but")
    return clause(s, "être", "be", ("pres", "pres"), ("%s %s %s" % (agreed(a, s), link[0], agreed(b, s)),
                                                      "%s %s %s" % (a.en, link[1], b.en))) + (".",)


@pattern
def profession(g):
    noun = g.pick([n for n in nouns.of("role") if n.lemma not in
                   "bébé enfant homme femme garçon fille client touriste élève".split()])
    # The profession shows the gender, so it must fit the person.
    people = [p for p in (g.subject() for _ in range(6)) if p.gender == noun.gender and " et " not in p.fr
              and "journaliste" not in p.fr and not p.fr.startswith(("le ", "la ", "l'", "les "))]
    if not people:
        return None
    s = people[0]
    plural = s.number == "p"
    name = noun.plural if plural else noun.lemma
    en = noun.en_plural if plural else noun_phrase(noun, "indef").en
    verb, tenses, neg = g.pick((("être", ("pres", "pres"), ""), ("être", ("pres", "pres"), "pas"),
                                ("être", ("impf", "past"), ""), ("devenir", ("pc", "past"), ""),
                                ("devenir", ("fut", "will"), "")))
    if tenses[0] == "fut" and s.lemma.startswith("grand"):
        return None        # too late for a new career
    return clause(s, verb, "be" if verb == "être" else "become", tenses, (name, en), neg) + (".",)


UNGRADED = "français anglais italien espagnol rond carré gratuit violet rose vide".split()
EXCESSIVE = ("grand petit cher lourd long court difficile facile lent bruyant dangereux sale froid chaud "
             "vieux sucré ennuyeux simple").split()


@pattern
def thing_is(g):
    noun = g.pick(nouns.of("clothes", "pair", "car", "bike", "ride", "furniture", "tool", "building",
                           "outdoors", "room", "idea",
                           "text", "show", "fruit", "dish", "food", "drink"))
    a = g.adjective_for(noun)
    if not a or a.lemma in ("nouveau", "gros") or a.lemma == "bon" and noun.cls == "idea":
        return None
    plural = noun.cls in ("clothes", "tool", "fruit", "text", "building") and g.chance(0.25)
    s = noun_phrase(noun, g.pick(("def", "dem", "poss")) if noun.cls in ("clothes", "pair", "car", "bike",
                                                                         "tool") else
                    g.pick(("def", "dem")), "p" if plural else "s", None, g.pick((0, 1, 3, 4)))
    fr, en = g.pick((("", ""), ("", ""), ("très", "very"), ("trop", "too"), ("vraiment", "really")))
    absolute = a in adjectives.COLORS or a.lemma in UNGRADED
    if absolute or (fr == "trop" and a.lemma not in EXCESSIVE):
        fr, en = "", ""
    if a.lemma in ("délicieux",) and fr == "très":
        fr, en = "vraiment", "really"
    neg = "pas" if not fr and g.chance(0.3) else ""
    return clause(s, "être", "be", ("pres", "pres"), ((fr + " " + agreed(a, s)).strip(),
                                                      (en + " " + a.en).strip()),
                  neg) + (".",)


@pattern
def it_is_a(g):
    noun = g.pick(GOODS + nouns.of("building", "outdoors", "show", "idea", "event", "room"))
    plural = noun.cls in ("clothes", "tool", "text", "animal", "idea") and g.chance(0.25)
    a = g.adjective_for(noun)
    if not a:
        return None
    thing = noun_phrase(noun, "indef", "p" if plural else "s", a)
    neg = "pas" if g.chance(0.25) else ""
    if plural:
        s = Phrase("ce", "they", "m", "p", 5)
        return clause(s, "être", "be", ("pres", "pres"), (thing.fr, thing.en.replace("some ", "", 1)),
                      neg) + (".",)
    was = g.chance(0.25)
    return clause(IT, "être", "be", ("impf", "past") if was else ("pres", "pres"), (thing.fr, thing.en),
                  neg) + (".",)


@pattern(topic=True)
def have_thing(g):
    s = g.subject()
    noun = g.pick([n for n in GOODS if suits(n, s)])
    thing = g.phrase(noun, "indef", "p" if g.chance(0.15) else "s", 0.7)
    g.combine("vo", "avoir", noun.lemma)
    return clause(s, "avoir", "have", g.pick((("pres", "pres"), ("pres", "pres"), ("impf", "past"))),
                  (thing.fr, thing.en)) + (".",)


@pattern(topic=True)
def have_not(g):
    s, noun = g.subject(), g.pick(GOODS + nouns.of("kin")[2:8] + nouns.of("food", "drink", "resource"))
    if not suits(noun, s) or noun.lemma in ("repos", "aide", "souris"):
        return None
    thing = noun_phrase(noun, "de")
    g.combine("vo", "avoir", noun.lemma)
    return clause(s, "avoir", "have", ("pres", "pres"), (thing.fr, thing.en),
                  "pas" if noun.cls == "kin" else g.pick(("pas", "plus"))) + (".",)


@pattern
def whose(g):
    noun = g.pick(GOODS + nouns.of("kin")[:8])
    owner = g.pick((g.name(), g.relative(), g.role()))
    if not suits(noun, owner):
        return None
    thing = noun_phrase(noun, "def", "p" if noun.cls == "tool" and g.chance(0.2) else "s")
    mark = "'" if owner.number == "p" and owner.en.endswith("s") else "'s"
    possession = owner.en + mark + " " + thing.en[4:]
    fr = thing.fr + " " + french.contract("de", owner.fr)
    if noun.cls == "kin":
        if owner.fr.split()[-1] == noun.lemma:
            return None
        if noun.gender == "m":
            return "c'est " + fr, "he's " + possession, "."
        return "c'est " + fr, "she's " + possession, "."
    if thing.number == "p":
        return "ce sont " + fr, "they're " + possession, "."
    return "c'est " + fr, "it's " + possession, "."


@pattern
def mine(g):
    noun = g.pick(GOODS)
    thing = noun_phrase(noun, "dem", "p" if g.chance(0.3) else "s")
    owner = g.pick(((0, "moi"), (1, "toi"), (3, "nous"), (4, "vous"), (5, "eux"), None))
    en_be = "are" if thing.number == "p" else "is"
    neg = g.chance(0.3)
    if owner is None:
        who = g.pick((g.name(), g.relative()))
        fr, en = who.fr, "belong to " + who.en
        verb = ("don't " if thing.number == "p" else "doesn't ") if neg else ""
        en = verb + en if neg or thing.number == "p" else en.replace("belong", "belongs", 1)
        return (clause(thing, "être", "be", ("pres", "pres"), ("à " + fr, ""), "pas" if neg else "")[0],
                thing.en + " " + en, ".")
    en = thing.en + " " + en_be + ("n't " if neg else " ") + words.EN_OWN[owner[0]]
    return (clause(thing, "être", "be", ("pres", "pres"), ("à " + owner[1], ""), "pas" if neg else "")[0],
            en, ".")


PLACES_ON = {"table": ("tool", "text", "dish", "gift"), "lit": ("clothes", "text"),
             "chaise": ("clothes", "text"),
             "étagère": ("text", "tool", "gift"), "canapé": ("text", "clothes")}


def located(g):
    """A thing and where it lies: (noun, french place, english place)."""
    holder = g.pick(sorted(PLACES_ON))
    noun = g.pick(nouns.of(*PLACES_ON[holder]))
    g.combine("on", noun.lemma, holder)
    place = noun_phrase(nouns.noun(holder), "def")
    fr, en = g.pick((("sur", "on"), ("sur", "on"),
                     ("sous", "under"))) if holder != "étagère" and noun.cls != "dish" else ("sur", "on")
    return noun, fr + " " + place.fr, en + " " + place.en


@pattern
def there_is(g):
    noun, fr, en = located(g)
    number = "p" if noun.cls != "clothes" and g.chance(0.4) else "s"
    if number == "p" and g.chance(0.6):
        count = g.number(2, 6)
        thing = Phrase("%s %s" % (words.french_number(count), noun.plural),
                       "%s %s" % (words.english_number(count), noun.en_plural))
    else:
        thing = g.phrase(noun, "indef", number, 0.5)
    past = g.chance(0.2)
    be = ("were" if past else "are") if number == "p" else ("was" if past else "'s")
    start = "there" + be if be.startswith("'") else "there " + be
    return "il y %s %s %s" % ("avait" if past else "a", thing.fr, fr), "%s %s %s" % (start, thing.en, en), "."


@pattern
def there_is_not(g):
    if g.chance(0.5):
        noun = g.pick(nouns.of("food", "drink", "spice", "fruit", "dish"))
        fr, en = g.pick((("à la maison", "at home"), ("dans la cuisine", "in the kitchen"),
                         ("sur la table", "on the table")))
    else:
        noun, fr, en = located(g)
    g.combine("vo", "il y a", noun.lemma)
    number = "p" if noun.cls in ("fruit", "text") else "s"
    thing = noun_phrase(noun, "de", number)
    several = number == "p" or noun.cls == "pair"
    if g.chance(0.5):
        more = "there are no more " if several else "there's no more "
        if noun.cls not in ("food", "drink", "spice", "fruit"):
            return None
        core = thing.en[4:]
        return "il n'y a plus %s %s" % (thing.fr, fr), more + core + " " + en, "."
    be = "aren't" if several else "isn't"
    return "il n'y a pas %s %s" % (thing.fr, fr), "there %s %s %s" % (be, thing.en, en), "."


TOWN = nouns.of("building")


@pattern
def there_is_in_town(g):
    noun = g.pick([n for n in TOWN if n.lemma not in ("appartement", "ferme")])
    thing = g.phrase(noun, "indef", "s", 0.5)
    fr, en = g.pick((("près d'ici", "near here"), ("dans cette rue", "on this street"),
                     ("dans mon village", "in my village"),
                     ("dans cette ville", "in this city"), ("près de la gare", "near the station"),
                     ("derrière l'église", "behind the church"), ("en face du parc", "across from the park"),
                     ("à côté de l'école", "next to the school")))
    large = noun.lemma in "aéroport université stade usine château hôpital".split()
    if noun.lemma in fr or large and en not in ("near here", "in this city"):
        return None
    if "mon village" not in fr and g.chance(0.4):
        return "est-ce qu'il y a %s %s" % (thing.fr, fr), "is there %s %s" % (thing.en, en), "?"
    return "il y a %s %s" % (thing.fr, fr), "there's %s %s" % (thing.en, en), "."


@pattern
def where_thing_is(g):
    noun, fr, en = located(g)
    owner = g.pick((0, 1, 3, 4))
    s = noun_phrase(noun, g.pick(("def", "poss")), "p" if g.chance(0.2) and noun.cls != "dish" else "s",
                    None, owner)
    return clause(s, "être", "be", g.pick((("pres", "pres"), ("impf", "past"))), (fr, en),
                  "pas" if g.chance(0.25) else "") + (".",)


@pattern
def place_relative(g):
    a, b = g.pick(TOWN), g.pick(TOWN)
    if a == b or {a.lemma, b.lemma} & {"ferme", "appartement"}:
        return None
    s, other = noun_phrase(a, "def"), noun_phrase(b, "def")
    g.combine("pp", a.lemma, b.lemma)
    fr, en = g.pick((("derrière", "behind"), ("devant", "in front of"), ("près de", "near"),
                     ("loin de", "far from"),
                     ("à côté de", "next to"), ("en face de", "across from")))
    where = french.contract("de", other.fr) if fr.endswith(" de") else other.fr
    lead = fr[:-3] if fr.endswith(" de") else fr
    return clause(s, "être", "be", ("pres", "pres"), (lead + " " + where, en + " " + other.en),
                  "pas" if g.chance(0.15) else "") + (".",)


LIKED = nouns.of("fruit", "food", "drink", "animal")
# Foods that one compares with each other; what is in none of them forms the last group.
SIMILAR = (("tomate", "carotte", "oignon", "haricot"), ("pain", "riz"), ("salade", "soupe"),
           ("fromage", "viande", "poisson", "poulet", "jambon"), ("vache", "cochon", "canard", "poule"),
           ("vin", "bière"))
LIKING = (("aimer", "like"), ("adorer", "love"), ("détester", "hate"), ("préférer", "prefer"))


def generic(noun):
    """The generic article: les pommes, le pain = apples, bread."""
    if noun.cls in ("food", "drink"):
        return noun_phrase(noun, "def").fr, noun.en
    return noun_phrase(noun, "def", "p").fr, noun.en_plural


@pattern(topic=True)
def likes(g):
    s, noun = g.subject(young=True), g.pick(LIKED)
    fr, en = g.pick(LIKING)
    g.combine("vo", fr, noun.lemma)
    neg = "pas" if fr == "aimer" and g.chance(0.5) else ""
    return clause(s, fr, en, ("pres", "pres"), generic(noun), neg) + (".",)


@pattern(topic=True)
def likes_but(g):
    s, a, b = g.subject(young=True), g.pick(LIKED), g.pick(LIKED)
    if a == b or a.cls != b.cls or any((a.lemma in group) != (b.lemma in group) for group in SIMILAR):
        return None
    g.combine("vo", "aimer", a.lemma)
    g.combine("vo", "préférer", b.lemma)
    likes_a = clause(s, "aimer", "like", ("pres", "pres"), generic(a))
    second = pronoun_for(s)
    prefers_b = clause(second, "préférer", "prefer", ("pres", "pres"), generic(b))
    return likes_a[0] + ", mais " + prefers_b[0], likes_a[1] + ", but " + prefers_b[1], "."


@pattern
def prefer_this(g):
    verb = next(v for v in TRANSITIVES if v.fr == "choisir")
    s, noun = g.pronoun(), g.pick(verb.objects)
    thing = g.phrase(noun, "dem", "s", 0.85, without=UNWANTED)
    fr, en = g.pick((("préférer", "prefer"), ("vouloir", "want"), ("détester", "hate"), ("adorer", "love")))
    g.combine("vo", fr, noun.lemma)
    return clause(s, fr, en, ("pres", "pres"), (thing.fr, thing.en)) + (".",)


@pattern
def too_expensive(g):
    s, noun = g.pronoun(), g.pick(nouns.of("clothes", "pair", "furniture", "device", "car", "bike"))
    thing = noun_phrase(noun, "dem")
    faults = [a for a in adjectives.suiting(noun)
              if a.lemma in "grand petit cher lourd sale vieux court lent".split()]
    if not faults:
        return None
    why = g.pick(faults)
    g.combine("na", noun.lemma, why.lemma)
    first = clause(s, "aimer", "like", ("pres", "pres"), (thing.fr, thing.en))
    it = it_for(thing)
    second = clause(it, "être", "be", ("pres", "pres"), ("trop " + agreed(why, thing), "too " + why.en))
    return first[0] + ", mais " + second[0], first[1] + ", but " + second[1], "."

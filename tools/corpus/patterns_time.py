"""Patterns of numbers, clock, calendar, age, price, weather, and of going places in the world.

Numbers are drawn mostly above sixty-nine, where French counts in twenties.
"""

from . import french, nouns, verbs, words
from .grammar import YOUNG, Phrase, clause, noun_phrase
from .patterns_actions import at_times
from .registry import pattern


def high_number(g, low=2, high=99):
    return g.number(70, 99) if g.chance(0.45) and high >= 99 else g.number(low, high)


@pattern(topic=True)
def age(g):
    s = g.subject(third=g.chance(0.5))
    n = g.number(11, 60)
    if s.lemma and s.lemma != s.fr and s.lemma not in ("frère", "sœur", "cousin", "cousine", "fils", "élève"):
        n = g.number(60, 99) if s.lemma.startswith("grand") else g.number(25, 65)
    if s.number == "p" and s.lemma:
        return None
    if s.lemma in ("enfant", "garçon", "fille"):
        n = g.number(4, 14)
    tenses = g.pick((("pres", "pres"), ("pres", "pres"), ("fut", "will"), ("impf", "past")))
    extra = {"fut": ("demain", "tomorrow"), "impf": ("à cette époque", "at that time")}.get(tenses[0],
                                                                                            ("", ""))
    return clause(s, "avoir", "be", tenses, (("%s ans %s" % (words.french_number(n), extra[0])).strip(),
                                            ("%s years old %s" % (words.english_number(n),
                                                                  extra[1])).strip())) + (".",)


CHEAP = ("stylo crayon cahier fourchette cuillère couteau assiette verre tasse clé bouteille ballon jouet "
         "boîte carte fleur photo chaussette gant outil").split()


@pattern
def price(g):
    noun = g.pick(nouns.of("clothes", "pair", "tool", "furniture", "text", "fruit"))
    plural = noun.cls in ("pair", "fruit") or g.chance(0.15)
    thing = noun_phrase(noun, g.pick(("dem", "def")), "p" if plural else "s")
    n = {"furniture": g.number(100, 300), "fruit": g.number(2, 9),
         "text": g.number(5, 25)}.get(noun.cls, high_number(g, 20))
    if noun.lemma in CHEAP:
        n = g.number(2, 19)
    if noun.lemma in ("journal", "lettre", "passeport"):
        return None
    g.combine("num", noun.lemma, str(n))
    tenses = g.pick((("pres", "pres"), ("impf", "past")))
    return clause(thing, "coûter", "cost", tenses, (words.french_number(n) + " euros",
                                                    words.english_number(n) + " euros")) + (".",)


@pattern
def paid(g):
    s, n = g.subject(), high_number(g, 20)
    noun = g.pick(nouns.of("clothes", "pair", "tool", "gift") + (nouns.noun("vélo"),))
    if noun.lemma in CHEAP + ["passeport"] or noun.lemma == "vélo" and n < 70:
        return None
    thing = noun_phrase(noun, g.pick(("dem", "indef")))
    g.combine("num", noun.lemma, str(n))
    return clause(s, "payer", "pay", ("pc", "past"), ("%s %s euros" % (thing.fr, words.french_number(n)),
                                                     "%s euros for %s" %
                                                      (words.english_number(n), thing.en))) + (".",)


@pattern
def clock_now(g):
    fr, en = g.clock(1, 12)
    lead = g.pick((("il est", "it's"), ("il est presque", "it's almost"), ("il est déjà", "it's already"),
                   ("il était", "it was")))
    return lead[0] + " " + fr, lead[1] + " " + en, "."


@pattern
def event_at(g):
    what = g.pick([n for n in nouns.of("event", "show") if n.lemma not in ("voyage", "anniversaire",
                                                                           "chanson")] +
                  list(nouns.of("ride")[:3]))
    s = noun_phrase(what, "def")
    fr, en = g.clock(7, 12)
    verb = (("partir", "leave"), ("arriver", "arrive")) if what.cls == "ride" else (("commencer", "start"),
                                                                                    ("finir", "end"))
    v = g.pick(verb)
    g.combine("vo", v[0], what.lemma)
    tenses = g.pick((("pres", "pres"), ("fut", "will"), ("pc", "past")))
    extra = g.pick({"pres": (("", ""),), "fut": words.FUTURE_TIMES[:1] + (("", ""),),
                    "pc": (("", ""), ("hier", "yesterday"))}[tenses[0]])
    return clause(s, v[0], v[1], tenses, (("à %s %s" % (fr, extra[0])).strip(),
                                          ("at %s %s" % (en, extra[1])).strip())) + (".",)


@pattern
def place_hours(g):
    weekly = "école banque bibliothèque pharmacie poste mairie".split()      # closed on Sundays
    noun = nouns.noun(g.pick(weekly + "marché supermarché boulangerie musée église piscine magasin".split()))
    s = noun_phrase(noun, "def")
    v, fr, en = g.pick(((("ouvrir", "open"),) + g.clock(7, 9), (("fermer", "close"),) + g.clock(5, 8)))
    day = g.pick((("", ""), ("le lundi", "on Mondays")) + (() if noun.lemma == "école" else (
        ("le samedi", "on Saturdays"),)) + (() if noun.lemma in weekly else (("le dimanche", "on Sundays"),)))
    return clause(s, v[0], v[1], ("pres", "pres"), (("à %s %s" % (fr, day[0])).strip(),
                                                    ("at %s %s" % (en, day[1])).strip())) + (".",)


@pattern
def date(g):
    month = g.pick(words.MONTHS)
    n = g.number(1, 31 if month[0] not in ("février", "avril", "juin", "septembre", "novembre") else 28)
    day = ("le premier " if n == 1 else "le %s " % words.french_number(n)) + month[0]
    en = "%s %s" % (month[1], ordinal(n))
    kind = g.number(0, 3)
    if kind == 0:
        return "aujourd'hui, c'est " + day, "today is " + en, "."
    if kind == 1:
        return "nous sommes " + day, "it's " + en, "."
    if kind == 2:
        who = g.name()
        return "%s est %s %s" % (who.fr, "née" if who.gender == "f" else "né",
                                 day), "%s was born on %s" % (who.en, en), "."
    owner = g.pick((g.name(), g.relative()))
    return "l'anniversaire %s est %s" % (french.contract("de", owner.fr),
                                         day), "%s's birthday is %s" % (owner.en, "on " + en), "."


def ordinal(n):
    """English ordinals in figures, as calendars print them: 1st, 22nd, 13th."""
    if n in (11, 12, 13):
        return "%dth" % n
    return "%d%s" % (n, {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th"))


@pattern
def birth(g):
    s = g.subject(third=True)
    if s.number == "p" and s.lemma:
        return None
    if g.chance(0.5):
        city = g.pick(words.CITIES)
        rest = "à " + city[0], "in " + city[1]
    else:
        month = g.pick(words.MONTHS)
        rest = "en " + month[0], "in " + month[1]
    return clause(s, "naître", "be born", ("pc", "past"), rest) + (".",)


WEATHER = (("il fait beau", "the weather is nice"), ("il fait mauvais", "the weather is bad"),
           ("il fait froid", "it's cold"),
           ("il fait chaud", "it's hot"), ("il pleut", "it's raining"), ("il neige", "it's snowing"),
           ("il y a du vent", "it's windy"), ("il y a du soleil", "it's sunny"),
           ("il y a du brouillard", "it's foggy"),
           ("il fait très froid", "it's very cold"), ("il fait très chaud", "it's very hot"),
           ("il fait nuit", "it's dark"),
           ("il pleut beaucoup", "it's raining a lot"), ("il fait trop chaud", "it's too hot"),
           ("il fait frais", "it's cool"),
           ("le ciel est bleu", "the sky is blue"), ("le ciel est gris", "the sky is gray"))


@pattern
def weather_now(g):
    fr, en = g.pick(WEATHER)
    where = g.pick((("", ""), ("aujourd'hui", "today"), ("ce matin", "this morning"), ("dehors", "outside")) +
                   tuple(("à " + c[0], "in " + c[1]) for c in words.CITIES))
    if "nuit" in fr and where[0] in ("aujourd'hui", "ce matin") or "ciel" in fr and where[0] == "dehors":
        return None
    return (fr + " " + where[0]).strip(), (en + " " + where[1]).strip(), "."


@pattern
def weather_other_times(g):
    past, future, impf = g.pick((
        (("il a plu", "it rained"), ("il pleuvra", "it will rain"), ("il pleuvait", "it was raining")),
        (("il a neigé", "it snowed"), ("il neigera", "it will snow"), ("il neigeait", "it was snowing")),
        (("il a fait froid", "it was cold"), ("il fera froid", "it will be cold"),
         ("il faisait froid", "it was cold")),
        (("il a fait chaud", "it was hot"), ("il fera chaud", "it will be hot"),
         ("il faisait chaud", "it was hot")),
        (("il a fait beau", "the weather was nice"), ("il fera beau", "the weather will be nice"),
         ("il faisait beau", "the weather was nice")),
        (("il a fait mauvais", "the weather was bad"), ("il fera mauvais", "the weather will be bad"),
         ("il faisait mauvais", "the weather was bad"))))
    kind = g.pick(("past", "future", "impf"))
    if kind == "past":
        return at_times(g, words.PAST_TIMES, past) + (".",)
    if kind == "future":
        return at_times(g, words.FUTURE_TIMES[:5] + words.FUTURE_TIMES[6:9], future) + (".",)
    v, who = g.pick(verbs.among(verbs.MOTIONS, "partir arriver revenir")), g.subject()
    moved = clause(who, v.fr, v.en, ("pc", "past"))
    return "%s quand %s" % (impf[0], moved[0]), "%s when %s" % (impf[1], moved[1]), "."


@pattern
def weather_so(g):
    fr, en = g.pick((("il pleut", "it's raining"), ("il neige", "it's snowing"),
                     ("il fait froid", "it's cold"),
                     ("il fait mauvais", "the weather is bad"), ("il y a du vent", "it's windy")))
    s = g.subject()
    clothing = noun_phrase(nouns.noun(g.pick("manteau chapeau pull écharpe veste".split())), "poss",
                           s.number, None, s.person, s.gender == "f")
    kind = g.number(0, 2)
    if kind == 0:
        rest = clause(s, "rester", "stay", ("pres", "prog"), ("à la maison", "at home"))
    elif kind == 1:
        rest = clause(s, "mettre", "put on", ("pres", "prog"), (clothing.fr, clothing.en))
        g.combine("vo", "mettre", clothing.lemma)
    else:
        rest = clause(s, "sortir", "go out", ("pres", "prog"), neg="pas")
    return "%s, donc %s" % (fr, rest[0]), "%s, so %s" % (en, rest[1]), "."


def country_in(country):
    name, kind, _ = country
    return {"f": "en ", "p": "aux "}.get(kind, "au ") + name


@pattern(topic=True)
def travel(g):
    s = g.subject()
    if g.chance(0.65):
        country = g.pick(words.COUNTRIES)
        fr, en = country_in(country), country[2]
    else:
        city = g.pick(words.CITIES)
        fr, en = "à " + city[0], city[1]
    kind = g.number(0, 3)
    if kind == 0:
        return clause(s, "aller", "go", ("pres", "pres"), (fr, "to " + en),
                      adverb=("souvent", "often")) + (".",)
    if kind == 1:
        return clause(s, "habiter", "live", ("pres", "pres"), (fr, "in " + en)) + (".",)
    tenses, times = ((("pc", "past"), words.PAST_TIMES[2:5]) if kind == 2 else
                     (("fut", "will"), words.FUTURE_TIMES[1:3] + (("cet été", "this summer"),)))
    # One travels in a country, but goes to a city.
    v = ("aller", "go") if fr.startswith("à ") else g.pick((("aller", "go"), ("voyager", "travel")))
    prep = "to " if v[0] == "aller" else "in "
    return at_times(g, times, clause(s, v[0], v[1], tenses, (fr, prep + en)), 0.3) + (".",)


@pattern(topic=True)
def come_from(g):
    s, (name, kind, en) = g.subject(third=g.chance(0.4)), g.pick(words.COUNTRIES)
    fr = {"f": "de ", "p": "des "}.get(kind, "du ") + name
    fr = french.elide(fr) if kind == "f" else fr
    if g.chance(0.5):
        return clause(s, "venir", "come", ("pres", "pres"), (fr, "from " + en), "pas" if g.chance(0.2)
                      else "") + (".",)
    pair = clause(s, "revenir", "come back", ("fut", "will"), (fr, "from " + en))
    return at_times(g, words.FUTURE_TIMES[:6], pair, 0) + (".",)


@pattern(topic=True)
def languages(g):
    s, (fr, en) = g.subject(), g.pick(words.LANGUAGES)
    kind = g.number(0, 3)
    if kind == 0:
        how = g.pick((("très bien", "very well"), ("bien", "well"), ("un peu", "a little"), ("mal", "badly")))
        return clause(s, "parler", "speak", ("pres", "pres"), (how[0] + " " + fr,
                                                              en + " " + how[1])) + (".",)
    if kind == 1:
        return clause(s, "parler", "speak", ("pres", "pres"), (fr, en), "pas") + (".",)
    le = french.elide("le " + fr)
    if kind == 2:
        where = g.pick((("", ""), ("à l'école", "at school"), ("à l'université", "at the university")))
        v = g.pick((("apprendre", "learn"), ("étudier", "study"), ("enseigner", "teach")))
        return clause(s, v[0], v[1], ("pc", "past"), ((le + " " + where[0]).strip(),
                                                      (en + " " + where[1]).strip())) + (".",)
    return clause(s, "comprendre", "understand", ("pres", "pres"), (le, en), g.pick(("", "pas"))) + (".",)


@pattern(topic=True)
def plays(g):
    s = g.subject(young=True)
    if g.chance(0.5):
        fr, en = g.pick(words.SPORTS)
        fr = french.contract("à", fr)
    else:
        fr, en = g.pick(words.INSTRUMENTS)
        fr = fr.replace("le ", "du ", 1) if fr.startswith("le ") else "de " + fr
    kind = g.number(0, 4)
    if kind == 0:
        return clause(s, "jouer", "play", ("pres", "pres"), (fr, en), adverb=g.pick(words.FREQUENCY)) + (".",)
    if kind == 1:
        return at_times(g, words.HABIT_TIMES, clause(s, "jouer", "play", ("pres", "pres"), (fr, en))) + (".",)
    if kind == 2:
        return at_times(g, words.PAST_TIMES[:2], clause(s, "jouer", "play", ("pc", "past"),
                                                        (fr, en))) + (".",)
    if kind == 3:
        return clause(s, "jouer", "play", ("pres", "pres"), (fr, en), g.pick(("jamais", "plus"))) + (".",)
    return at_times(g, words.NOW_TIMES, clause(s, "jouer", "play", ("pres", "prog"), (fr, en)), 0.1) + (".",)


GOALS = [n for n in nouns.of("building", "outdoors") if n.lemma in
         "école gare hôpital banque marché supermarché boulangerie restaurant cinéma théâtre musée "
         "bibliothèque église "
         "pharmacie aéroport hôtel piscine stade université poste mairie plage parc".split()]


def goal(g, among=None, school=False):
    """A place one goes to or is at: (noun, french with à, english without preposition).

    among: lemmas to choose from; school: the subject may be a pupil, so school is a place for them too.
    """
    noun = g.pick([n for n in GOALS if (among is None or n.lemma in among)
                   and (school or n.lemma != "école")])
    place = noun_phrase(noun, "def")
    return noun, french.contract("à", place.fr), {"école": "school",
                                                  "cinéma": "the movies"}.get(noun.lemma, place.en)


def may_be_pupil(who):
    """Names, pronouns and children; not the neighbor or the dentist."""
    return who.lemma in YOUNG or not who.lemma or who.lemma == who.fr


@pattern(topic=True)
def goes_to(g):
    s = g.subject(young=True)
    noun, fr, en = goal(g, school=may_be_pupil(s))
    g.combine("vo", "aller", noun.lemma)
    kind = g.number(0, 4)
    if kind == 0:
        return clause(s, "aller", "go", ("pres", "prog"), (fr, "to " + en)) + (".",)
    if kind == 1:
        # No school on Sundays, and nobody sees the town hall or the airport every day.
        rare = noun.lemma in ("hôpital", "aéroport", "hôtel", "mairie", "pharmacie", "banque", "poste")
        times = words.HABIT_TIMES[:2] if noun.lemma == "école" else words.HABIT_TIMES[3:4] if rare \
            else words.HABIT_TIMES
        return at_times(g, times, clause(s, "aller", "go", ("pres", "pres"), (fr, "to " + en))) + (".",)
    if kind == 2:
        neg = "pas" if g.chance(0.3) else ""
        return at_times(g, words.PAST_TIMES[:5], clause(s, "aller", "go", ("pc", "past"), (fr, "to " + en),
                                                        neg)) + (".",)
    if kind == 3:
        return at_times(g, words.FUTURE_TIMES, clause(s, "aller", "go", ("fut", "will"),
                                                      (fr, "to " + en))) + (".",)
    how = g.pick((("à pied", "on foot"), ("en voiture", "by car"), ("en bus", "by bus"),
                  ("à vélo", "by bike"), ("en train", "by train"),
                  ("en métro", "by subway")))
    if how[0] == "en train" and noun.lemma not in ("plage", "aéroport", "université", "stade"):
        return None
    return clause(s, "aller", "go", ("pres", "prog"), (fr + " " + how[0], "to " + en + " " + how[1])) + (".",)


@pattern(topic=True)
def is_at(g):
    s = g.subject(young=True)
    noun, fr, en = goal(g, school=may_be_pupil(s))
    g.combine("vo", "être à", noun.lemma)
    tenses, times = g.pick(((("pres", "pres"), words.NOW_TIMES[:1] + (("", ""),)),
                            (("impf", "past"), words.PAST_TIMES[:2]),
                            (("fut", "will"), words.FUTURE_TIMES[:1] + words.FUTURE_TIMES[8:9])))
    pair = clause(s, "être", "be", tenses, (fr, "at " + en), "pas" if g.chance(0.25) else "")
    time = g.pick(times)
    return (pair[0] + " " + time[0]).strip(), (pair[1] + " " + time[1]).strip(), "."


@pattern(topic=True)
def at_home_of(g):
    s = g.subject(young=True)
    who = g.pick((("le médecin", "the doctor's"), ("le dentiste", "the dentist's"),
                  ("le coiffeur", "the hairdresser's")) +
                 tuple((n, n + "'s house") for n in words.FEMALE + words.MALE) +
                 (("moi", "my place"), ("nous", "our place")))
    if who[0] in s.fr or (who[0] in ("moi", "nous")
                          and s.person in (0, 3)) or s.en.replace("the ", "") in who[1]:
        return None
    kind = g.number(0, 2)
    if kind == 0:
        return clause(s, "être", "be", ("pres", "pres"), ("chez " + who[0], "at " + who[1])) + (".",)
    verb = ("venir", "come") if who[0] in ("moi", "nous") else ("aller", "go")
    tenses, times = ((("pc", "past"), words.PAST_TIMES[:4]) if kind == 1
                     else (("fut", "will"), words.FUTURE_TIMES[:5]))
    return at_times(g, times, clause(s, verb[0], verb[1], tenses, ("chez " + who[0], "to " + who[1])),
                    0.2) + (".",)


@pattern
def numbers_of(g):
    n = high_number(g, 20)
    noun, fr, en = g.pick((("élève", "dans cette école", "in this school"),
                           ("étudiant", "dans cette bibliothèque", "in this library"),
                           ("chambre", "dans cet hôtel", "in this hotel"), ("page", "", ""),
                           ("lit", "dans cet hôpital", "in this hospital"),
                           ("client", "dans ce magasin", "in this store"),
                           ("arbre", "dans ce jardin", "in this garden"),
                           ("touriste", "dans ce musée", "in this museum"),
                           ("maison", "dans ce village", "in this village")))
    if noun == "page":
        text = noun_phrase(nouns.noun(g.pick(("livre", "roman", "magazine", "cahier"))), "dem")
        return ("%s a %s pages" % (text.fr, words.french_number(n)),
                "%s has %s pages" % (text.en, words.english_number(n)), ".")
    plural_fr, plural_en = ("arbres", "trees") if noun == "arbre" else (nouns.noun(noun).plural,
                                                                        nouns.noun(noun).en_plural)
    if noun == "chambre":
        plural_en = "rooms"        # what a hotel calls its bedrooms
    gender = "m" if noun == "arbre" else nouns.noun(noun).gender
    return ("il y a %s %s %s" % (words.french_number(n, gender), plural_fr, fr),
            "there are %s %s %s" % (words.english_number(n), plural_en, en), ".")


@pattern
def day_plan(g):
    s, day = g.subject(), g.pick(words.DAYS)
    what = g.pick([n for n in nouns.of("event") if n.lemma not in ("voyage", "anniversaire", "mariage")])
    if day[0] == "dimanche" and what.lemma != "fête":
        return None        # a day off
    thing = g.phrase(what, "indef", "s", 0.3)
    g.combine("vo", "avoir", what.lemma)
    fr, en = g.clock(8, 11)
    kind = 2 if what.lemma == "fête" else g.number(0, 2)      # no parties in the morning
    if kind == 0:
        rest = "%s %s à %s" % (thing.fr, day[0], fr), "%s on %s at %s" % (thing.en, day[1], en)
    elif kind == 1:
        rest = "%s %s matin" % (thing.fr, day[0]), "%s on %s morning" % (thing.en, day[1])
    else:
        rest = "%s %s" % (thing.fr, day[0]), "%s on %s" % (thing.en, day[1])
    return clause(s, "avoir", "have", ("pres", "pres"), rest) + (".",)


LATER = Phrase("nous", "we", "m", "p", 3)


@pattern
def lets(g):
    """« Allons au cinéma ! » : first person plural imperative."""
    if g.chance(0.5):
        noun, fr, en = goal(g, "restaurant cinéma théâtre musée bibliothèque piscine stade plage parc "
                               "marché".split())
        g.combine("vo", "aller", noun.lemma)
        time = g.pick((("", ""), ("ce soir", "tonight"), ("demain", "tomorrow"), ("ensemble", "together"),
                       ("dimanche", "on Sunday")))
        return ("allons %s %s" % (fr, time[0])).strip(), ("let's go to %s %s" % (en, time[1])).strip(), "!"
    v = g.pick(verbs.among(verbs.TRANSITIVES,
                           "manger boire acheter regarder écouter visiter louer nettoyer ouvrir fermer"))
    o = g.object_of(v, LATER, with_adjective=0.2)
    return french.conjugate(v.fr, "imp", 3) + " " + o.fr, "let's " + v.en + " " + o.en, "!"

"""Patterns of plain action sentences: tenses, negation, reflexives, movement.

A bare present of an event is progressive in English; with an adverb of habit it is simple.
"""

from . import nouns, verbs, words
from .french import infinitive
from .grammar import YOUNG, clause, conj_present, noun_phrase, suits
from .registry import pattern

# Over in an instant, so « is finding » would be odd; these are used in other tenses.
PUNCTUAL = "trouver perdre oublier casser acheter garder adorer jeter commencer vendre finir cacher".split()
# Too slight to be remembered weeks later.
BRIEF = ("mettre porter ouvrir fermer allumer éteindre couper goûter manger boire nourrir essayer "
         "garder corriger choisir").split()
SOON = words.FUTURE_TIMES[:1] + words.FUTURE_TIMES[8:]      # and nobody plans them weeks ahead
UNPLANNED = ("perdre", "oublier", "casser", "garder", "trouver", "cacher")      # nobody sets a date for these
LASTING = tuple(v for v in verbs.TRANSITIVES if v.fr not in PUNCTUAL)
EVENTS = tuple(v for v in LASTING if v.kind == "event")
DOABLE = tuple(v for v in verbs.TRANSITIVES if v.kind == "event")
HABITUAL = verbs.among(verbs.TRANSITIVES, "manger boire porter lire écrire conduire regarder") + tuple(
    v._replace(objects=(nouns.noun("ordinateur"), nouns.noun("téléphone")))
    for v in verbs.among(verbs.TRANSITIVES, "utiliser"))
FOREVER = "vendre acheter visiter conduire porter finir lire louer jeter adorer traduire".split()
EVERYDAY = ("fruit", "food", "drink", "dish", "text", "writing", "clothes", "pair")
GENERIC = verbs.among(verbs.TRANSITIVES, "manger boire porter lire acheter")


def without_some(text):
    """Generic statements drop « some »: il mange souvent du pain = he often eats bread."""
    return text.replace("some ", "", 1) if text.startswith("some ") else text


def habit_object(g, verb, subject):
    dets = [d for d in verb.dets if d in ("indef", "part")] or ["def"]
    # A habit is with things in general, and « le bus lent » would be one of them.
    thing = g.object_of(verb, subject, dets, with_adjective=0 if dets == ["def"] else 0.2,
                        plural="indef" in dets)
    return thing.fr, without_some(thing.en)


def is_brief(verb, thing):
    """Too slight for a far-off date: turning on a lamp, or buying apples."""
    return verb.fr in BRIEF or bool(thing.lemma) and \
        nouns.noun(thing.lemma).cls in ("fruit", "food", "drink", "dish")


def past_times(verb, thing):
    return words.PAST_TIMES[:2] if is_brief(verb, thing) else words.PAST_TIMES


def future_times(verb, thing):
    if verb.fr == "porter":
        return SOON[:-1]        # one wears a thing for a day, not in an hour
    if thing.lemma in ("vin", "bière"):
        return [t for t in SOON if "matin" not in t[0]]
    return SOON if is_brief(verb, thing) else words.FUTURE_TIMES


def at_times(g, times, pair, front=0.25):
    """Add a time expression, at the end or in front of the clause."""
    fr, en = g.pick(times)
    if g.chance(front):
        return fr + ", " + pair[0], en + ", " + pair[1]
    return pair[0] + " " + fr, pair[1] + " " + en


@pattern(topic=True)
def action_present(g):
    s, v = g.subject(), g.pick(LASTING)
    o = g.object_of(v, s)
    return clause(s, v.fr, v.en, conj_present(v), (o.fr, o.en)) + (".",)


@pattern(topic=True)
def action_now(g):
    s, v = g.subject(), g.pick(EVENTS)
    o = g.object_of(v, s)
    return at_times(g, words.NOW_TIMES, clause(s, v.fr, v.en, ("pres", "prog"), (o.fr, o.en))) + (".",)


@pattern(topic=True)
def action_often(g):
    s, v = g.subject(), g.pick(HABITUAL)
    return clause(s, v.fr, v.en, ("pres", "pres"), habit_object(g, v, s),
                  adverb=g.pick(words.FREQUENCY)) + (".",)


@pattern(topic=True)
def action_habit(g):
    s, v = g.subject(), g.pick(HABITUAL)
    pair = clause(s, v.fr, v.en, ("pres", "pres"), habit_object(g, v, s))
    # Coats are for winter, and a phone or bread is for every day.
    times = words.HABIT_TIMES[:-1] if v.fr in ("porter", "utiliser", "manger", "boire") else words.HABIT_TIMES
    return at_times(g, times, pair) + (".",)


@pattern(topic=True)
def action_past(g):
    s, v = g.subject(), g.pick(DOABLE)
    o = g.object_of(v, s)
    return clause(s, v.fr, v.en, ("pc", "past"), (o.fr, o.en)) + (".",)


@pattern(topic=True)
def action_past_time(g):
    s, v = g.subject(), g.pick([v for v in DOABLE if v.fr != "garder"])
    o = g.object_of(v, s)
    return at_times(g, past_times(v, o), clause(s, v.fr, v.en, ("pc", "past"), (o.fr, o.en))) + (".",)


@pattern(topic=True)
def action_past_negative(g):
    s, v = g.subject(), g.pick(DOABLE)
    o = g.object_of(v, s, neg=True)
    return clause(s, v.fr, v.en, ("pc", "past"), (o.fr, o.en), neg="pas") + (".",)


@pattern(topic=True)
def action_already(g):
    s, v = g.subject(), g.pick([v for v in DOABLE if v.fr not in ("porter", "garder", "utiliser")])
    o = g.object_of(v, s, dets=("def", "dem", "poss"))
    if g.chance(0.5):
        return clause(s, v.fr, v.en, ("pc", "perf"), (o.fr, o.en), adverb=("déjà", "already")) + (".",)
    if v.fr in UNPLANNED:
        return None        # « not yet » would make a plan of it
    return clause(s, v.fr, v.en, ("pc", "perf"), (o.fr, o.en), neg="pas encore") + (".",)


@pattern(topic=True)
def action_never_yet(g):
    s, v = g.subject(), g.pick(verbs.among(DOABLE, "manger boire goûter lire conduire visiter porter "
                                                   "regarder réparer casser louer"))
    o = g.object_of(v, s, dets=("def", "dem") if "indef" not in v.dets else ("indef", "part", "dem"),
                    neg=True)
    en = o.en.replace("any ", "", 1)
    return clause(s, v.fr, v.en, ("pc", "perf"), (o.fr, en), neg="jamais") + (".",)


@pattern(topic=True)
def action_future(g):
    s, v = g.subject(), g.pick([v for v in DOABLE if v.fr not in UNPLANNED])
    o = g.object_of(v, s)
    pair = clause(s, v.fr, v.en, ("fut", "will"), (o.fr, o.en))
    return (at_times(g, future_times(v, o), pair) if g.chance(0.7) else pair) + (".",)


@pattern(topic=True)
def action_future_negative(g):
    s, v = g.subject(), g.pick(DOABLE)
    neg = g.pick(("pas", "jamais")) if v.fr in FOREVER else "pas"
    o = g.object_of(v, s, ("def", "dem", "poss") if neg == "jamais" else None, neg=True)
    return clause(s, v.fr, v.en, ("fut", "will"), (o.fr, o.en), neg=neg) + (".",)


@pattern(topic=True)
def action_going_to(g):
    s, v = g.subject(), g.pick([v for v in DOABLE if v.fr not in UNPLANNED])
    o = g.object_of(v, s)
    neg = "pas" if g.chance(0.25) else ""
    fr, _ = clause(s, "aller", "go", ("pres", "pres"), (v.fr + " " + o.fr, ""), neg)
    _, en = clause(s, v.fr, v.en, ("pres", "going"), ("", o.en), neg)
    if neg and o.fr.split()[0] in ("un", "une", "des", "du"):
        return None        # « pas » would change the article here
    return (at_times(g, future_times(v, o), (fr, en), 0.1) if g.chance(0.5) else (fr, en)) + (".",)


def none_of(g, verb, subject):
    """The object of a general negation: pas de pommes, pas de pain = apples, bread."""
    noun = g.pick([n for n in verb.objects if n.cls in EVERYDAY and suits(n, subject)
                   and n.lemma not in ("eau", "pizza", "chaussure")])
    g.combine("vo", verb.fr, noun.lemma)
    one = verb.fr == "porter" or noun.cls in ("food", "drink")
    thing = noun_phrase(noun, "de", "s" if one else "p")
    return thing.fr, thing.en.replace("any ", "", 1)


@pattern(topic=True)
def action_negative(g):
    s, v = g.subject(), g.pick(GENERIC)
    return clause(s, v.fr, v.en, ("pres", "pres"), none_of(g, v, s), neg="pas") + (".",)


@pattern(topic=True)
def action_never(g):
    s, v = g.subject(), g.pick(GENERIC)
    return clause(s, v.fr, v.en, ("pres", "pres"), none_of(g, v, s), neg="jamais") + (".",)


@pattern(topic=True)
def action_no_longer(g):
    s, v = g.subject(), g.pick([v for v in GENERIC if v.fr != "porter"])
    return clause(s, v.fr, v.en, ("pres", "pres"), none_of(g, v, s), neg="plus") + (".",)


@pattern(topic=True)
def action_nothing(g):
    s = g.subject(young=True)
    v = g.pick(verbs.among(verbs.TRANSITIVES,
                           "manger boire lire acheter vendre regarder trouver oublier comprendre casser "
                           "apporter"))
    tenses = g.pick((("pc", "past"), ("fut", "will")) if v.fr not in ("comprendre",) else
                    (("pres", "pres"), ("pc", "past")))
    return clause(s, v.fr, v.en, tenses, neg="rien", rest=g.pick((("", ""), ("ce soir", "tonight")))
                  if tenses[0] == "fut" else ("", "")) + (".",)


@pattern(topic=True)
def action_nobody(g):
    s, v = g.subject(), g.pick(verbs.PERSON_VERBS)
    state = v.kind == "state"
    tenses = g.pick((("pres", "pres"), ("impf", "past")) if state else (("pc", "past"), ("fut", "will")))
    place = ("", "")
    if v.fr in ("connaître", "voir", "rencontrer", "aimer", "attendre"):
        place = g.pick((place, ("ici", "here"), ("dans cette ville", "in this city"),
                        ("à Paris", "in Paris")))
    return clause(s, v.fr, v.en, tenses, place, neg="personne") + (".",)


def doing(g, subject, barred=()):
    """An intransitive verb; children do not smoke."""
    barred += ("fumer",) if subject.lemma in YOUNG else ()
    return g.pick([v for v in verbs.INTRANSITIVES if v.fr not in barred])


@pattern(topic=True)
def doing_present(g):
    s = g.subject(young=True)
    v = doing(g, s, ("voyager",))
    neg = "pas" if v.fr != "rêver" and g.chance(0.2) else ""
    pair = clause(s, v.fr, v.en, ("pres", "pres" if neg else "prog"), neg=neg)
    if neg and g.chance(0.7):
        pair = clause(s, v.fr, v.en, ("pres", "prog"), g.pick(words.NOW_TIMES), neg=neg)
    return pair + (".",)


ROOMS = {"dormir": "chambre salon jardin", "travailler": "bureau jardin bibliothèque",
         "étudier": "bibliothèque chambre",
         "chanter": "rue jardin", "danser": "rue salon", "nager": "lac rivière piscine",
         "courir": "parc rue forêt",
         "marcher": "forêt rue parc", "jouer": "jardin parc chambre", "cuisiner": "cuisine",
         "parler": "salon cuisine rue"}


@pattern(topic=True)
def doing_somewhere(g):
    s = g.subject(young=True)
    v = g.pick([v for v in verbs.INTRANSITIVES if v.fr in ROOMS])
    place = nouns.noun(g.pick(ROOMS[v.fr].split()))
    g.combine("vo", v.fr, place.lemma)
    where = g.phrase(place, "def", with_adjective=0)
    tenses = g.pick((("pres", "prog"), ("pc", "past"), ("fut", "will")))
    return clause(s, v.fr, v.en, tenses, ("dans " + where.fr, "in " + where.en)) + (".",)


MANNER = {"chanter": "bien mal beaucoup", "danser": "bien mal", "nager": "vite lentement bien",
          "courir": "vite lentement",
          "marcher": "vite lentement", "parler": "vite lentement trop", "travailler": "bien beaucoup trop",
          "cuisiner": "bien mal", "dormir": "bien mal beaucoup", "fumer": "trop beaucoup",
          "étudier": "beaucoup"}


@pattern(topic=True)
def doing_manner(g):
    s = g.subject()
    v = g.pick([v for v in verbs.INTRANSITIVES if v.fr in MANNER])
    fr, en = g.pick([m for m in words.MANNERS if m[0] in MANNER[v.fr].split()])
    if fr in ("bien", "vite", "lentement", "mal") and g.chance(0.4):
        fr, en = "très " + fr, "very " + en
    tenses, neg = g.pick(((("pres", "pres"), ""), (("pres", "pres"), "pas"), (("pc", "past"), "")))
    if neg and "mal" in fr:
        return None        # « pas mal » is praise
    return (clause(s, v.fr, v.en, tenses, ("", en), neg, adverb=(fr, "")) if tenses[0] == "pc"
            and fr.split()[-1] in ("bien", "mal", "trop", "beaucoup")
            else clause(s, v.fr, v.en, tenses, (fr, en), neg)) + (".",)


@pattern(topic=True)
def doing_past(g):
    s = g.subject(young=True)
    v = doing(g, s)
    pair = clause(s, v.fr, v.en, ("pc", "past"), neg="pas" if g.chance(0.3) else "")
    return (at_times(g, words.PAST_TIMES[:2] + (("ce matin", "this morning"),), pair) if g.chance(0.6)
            else pair) + (".",)


FLEETING = ("dormir", "pleurer", "rire", "sourire", "parler", "tousser", "marcher", "rêver")
CHILDHOOD = (("quand j'étais petit", "when I was little"), ("chaque été", "every summer"),
             ("tous les dimanches", "every Sunday"), ("à cette époque", "at that time"))


@pattern
def used_to(g):
    s, v = g.subject(), g.pick([v for v in verbs.INTRANSITIVES + HABITUAL
                                if v.fr not in FLEETING + ("utiliser", "porter")])
    rest = habit_object(g, v, s) if v.objects else ("", "")
    pair = clause(s, v.fr, v.en, ("impf", "used"), rest)
    as_child = s.fr == "je" and v.fr not in ("conduire", "boire", "fumer", "travailler",
                                             "voyager") and g.chance(0.4)
    times = CHILDHOOD[2:] if v.fr in ("manger", "boire") else CHILDHOOD[1:]
    if v.fr == "voyager":
        times = CHILDHOOD[1:2]
    return at_times(g, CHILDHOOD[:1] if as_child else times, pair, 0.5) + (".",)


INTERRUPTIONS = (("quand le téléphone a sonné", "when the phone rang"),
                 ("quand je suis arrivé", "when I arrived"),
                 ("quand tu as appelé", "when you called"), ("quand Marie est entrée", "when Marie came in"),
                 ("quand il a commencé à pleuvoir", "when it started to rain"),
                 ("quand Paul est parti", "when Paul left"),
                 ("pendant que je dormais", "while I was sleeping"),
                 ("quand nous sommes rentrés", "when we got home"))


@pattern
def was_doing(g):
    s = g.subject(young=True)
    v = g.pick((doing(g, s, ("voyager", "rêver")),
                g.pick(verbs.among(EVENTS, "manger boire lire écrire regarder réparer nettoyer laver "
                                           "préparer"))))
    o = g.object_of(v, s, with_adjective=0.1) if v.objects else None
    fr, en = g.pick(INTERRUPTIONS)
    if s.person in (0, 3) and (" je " in fr or " nous " in fr) or s.fr in fr.split():
        return None
    pair = clause(s, v.fr, v.en, ("impf", "pastprog"), (o.fr, o.en) if o else ("", ""))
    return pair[0] + " " + fr, pair[1] + " " + en, "."


@pattern(topic=True)
def reflexive_habit(g):
    s = g.subject(young=True)
    v = g.pick([v for v in verbs.REFLEXIVES if v.fr in ("se lever", "se coucher", "se réveiller")])
    if g.chance(0.5):
        fr, en = g.clock(8, 10) if v.fr == "se coucher" else g.clock(5, 9)
        rest = ("à " + fr, "at " + en)
    else:
        rest = g.pick((("tôt", "early"), ("tard", "late"), ("très tôt", "very early"),
                       ("trop tard", "too late")))
    tenses = g.pick((("pres", "pres"), ("pc", "past"), ("fut", "will")))
    return clause(s, v.fr, v.en, tenses, rest) + (".",)


@pattern(topic=True)
def reflexive_now(g):
    s = g.subject(young=True)
    v = g.pick([v for v in verbs.REFLEXIVES if v.fr not in ("se raser", "se réveiller", "se baigner")])
    neg = "pas" if v.fr in ("se reposer", "s'amuser", "se dépêcher") and g.chance(0.4) else ""
    pair = clause(s, v.fr, v.en, ("pres", "prog"), neg=neg)
    times = words.NOW_TIMES[:1] if v.fr in ("se coucher", "se lever") else words.NOW_TIMES
    return at_times(g, times, pair, 0.1) + (".",)


@pattern(topic=True)
def reflexive_past(g):
    s, v = g.subject(young=True), g.pick([v for v in verbs.REFLEXIVES if v.fr != "se raser"])
    pair = clause(s, v.fr, v.en, ("pc", "past"), neg="pas" if g.chance(0.3) else "")
    times = (("ce matin", "this morning"),)
    if v.fr in ("se coucher", "se reposer", "se promener", "s'amuser", "se baigner"):
        times += words.PAST_TIMES[:2]
    return (at_times(g, times, pair) if g.chance(0.6) else pair) + (".",)


@pattern(topic=True)
def reflexive_going(g):
    s, v = g.subject(young=True), g.pick([v for v in verbs.REFLEXIVES if v.fr != "se raser"])
    fr, _ = clause(s, "aller", "go", ("pres", "pres"), (infinitive(v.fr, s.person), ""))
    _, en = clause(s, v.fr, v.en, ("pres", "going"))
    # Getting up or dressed is not planned days ahead.
    soon = v.fr in ("se lever", "se réveiller", "s'habiller", "se doucher", "se dépêcher", "se coucher")
    times = words.FUTURE_TIMES[-1:] if soon else words.FUTURE_TIMES[-5:]
    return (at_times(g, times, (fr, en), 0.1) if v.fr != "se dépêcher" and g.chance(0.5)
            else (fr, en)) + (".",)


@pattern(topic=True)
def moved(g):
    s = g.subject(young=True)
    v = g.pick([v for v in verbs.MOTIONS if v.fr != "rester"])
    times = words.PAST_TIMES + (("ce matin", "this morning"), ("très tôt", "very early"),
                                ("trop tard", "too late"),
                                ("sans moi", "without me"))
    if v.fr == "tomber":
        times = (("dans l'escalier", "down the stairs"), ("dans la rue", "in the street"),
                 ("hier", "yesterday"))
    if v.fr == "rentrer" or s.person in (0, 3):
        times = times[:-1]
    neg = "pas" if g.chance(0.2) else ""
    if (neg or v.fr in ("sortir", "rentrer")) and v.fr != "tomber":
        times = words.PAST_TIMES[:2] + words.PAST_TIMES[7:] + (("ce matin", "this morning"),)
    return at_times(g, times, clause(s, v.fr, v.en, ("pc", "past"), neg=neg), 0) + (".",)


@pattern(topic=True)
def will_move(g):
    s = g.subject(young=True)
    v = g.pick([v for v in verbs.MOTIONS if v.fr not in ("tomber", "rester")])
    neg = "pas" if g.chance(0.2) else ""
    if neg and v.fr == "arriver":
        return None
    times = SOON if v.fr == "sortir" else words.FUTURE_TIMES
    if neg:        # « not in an hour » would promise another time
        times = [t for t in times if not t[0].startswith("dans ") and t[0] != "bientôt"]
    return at_times(g, times, clause(s, v.fr, v.en, ("fut", "will"), neg=neg), 0.15) + (".",)

"""Patterns with two verbs: conditions, causes, time clauses, reported speech, gerund and purpose.

After « si » and « quand » the tenses of the two languages differ, and are paired here by rule.
"""

from . import adjectives, english, french, nouns, verbs, words
from .grammar import (Phrase, clause, conj_present, noun_phrase, object_pronoun, pronoun_for, suits,
                      with_pronoun)
from .patterns_actions import DOABLE, LASTING, at_times
from .patterns_states import agreed
from .patterns_time import goal
from .registry import pattern

FAIR, FOUL, COMPANY, LEISURE = "fair", "foul", "company", "leisure"
# (french, english, what it invites to)
CONDITIONS = (("s'il fait beau", "if the weather is nice", FAIR), ("s'il pleut", "if it rains", FOUL),
              ("s'il neige", "if it snows", FOUL), ("s'il fait froid", "if it's cold", FOUL),
              ("si tu viens", "if you come", COMPANY), ("si Marie vient", "if Marie comes", COMPANY),
              ("si vous voulez", "if you want", COMPANY),
              ("si nous partons tôt", "if we leave early", COMPANY),
              ("si j'ai le temps", "if I have time", LEISURE))
# What each invites to: verbs alone, places, and verbs with an object.
INVITES = {FAIR: ("sortir|se promener", "plage parc piscine marché stade", "laver visiter"),
           FOUL: ("se reposer|rester", "cinéma musée bibliothèque théâtre restaurant",
                  "regarder lire mettre"),
           COMPANY: ("sortir|se promener", "plage parc cinéma musée théâtre restaurant marché",
                     "regarder visiter préparer"),
           LEISURE: ("se reposer|se promener|sortir", "plage parc piscine cinéma musée théâtre restaurant "
                     "bibliothèque", "regarder lire visiter nettoyer")}
WARM = ("manteau", "pull", "écharpe", "gant", "botte")
COSTLY = nouns.of("car", "bike", "furniture", "device") + (nouns.noun("bague"), nouns.noun("montre"))


def plan(g, subject, tenses, mood):
    """Something to do in a mood of INVITES."""
    alone, places, verbs_used = INVITES[mood]
    kind = g.number(0, 2)
    if kind == 0:
        v = g.pick(verbs.named(verbs.REFLEXIVES + verbs.MOTIONS, *alone.split("|")))
        rest = ("à la maison", "at home") if v.fr == "rester" else ("", "")
        return clause(subject, v.fr, v.en, tenses, rest)
    if kind == 1:
        noun, fr, en = goal(g, places.split())
        g.combine("vo", "aller", noun.lemma)
        return clause(subject, "aller", "go", tenses, (fr, "to " + en))
    v = g.pick([v for v in verbs.among(DOABLE, verbs_used) if v.en != "prepare for"])
    if v.fr == "mettre":
        v = v._replace(objects=tuple(n for n in v.objects if n.lemma in WARM))
    if v.fr == "laver":
        v = v._replace(objects=nouns.of("car"))
    o = g.object_of(v, subject, with_adjective=0)
    return clause(subject, v.fr, v.en, tenses, (o.fr, o.en))


def purchase(g, subject, tenses):
    """What money would make possible."""
    v = g.pick(verbs.among(DOABLE, "acheter visiter louer") + verbs.among(verbs.INTRANSITIVES, "voyager"))
    if v.fr == "acheter":
        v = v._replace(objects=COSTLY, dets=("indef", "dem"))
    o = g.object_of(v, subject, with_adjective=0.15) if v.objects else Phrase("", "")
    return clause(subject, v.fr, v.en, tenses, (o.fr, o.en))


@pattern
def if_future(g):
    s, (if_fr, if_en, mood) = g.subject(), g.pick(CONDITIONS)
    # Some conditions only make sense for certain people.
    allowed = {"si j'ai le temps": ("je",), "si nous partons tôt": ("nous",),
               "si vous voulez": ("nous", "je")}
    if s.fr not in allowed.get(if_fr, (s.fr,)):
        return None
    if (if_fr == "si tu viens" and s.person in (1, 4)) or "Marie" in s.fr and "Marie" in if_fr:
        return None
    result = plan(g, s, ("fut", "will"), mood)
    if g.chance(0.5):
        return if_fr + ", " + result[0], if_en + ", " + result[1], "."
    return result[0] + " " + if_fr, result[1] + " " + if_en, "."


WISHES = (("avoir", ("plus de temps", "more time")), ("avoir", ("de l'argent", "money")),
          ("être", ("riche", "rich")),
          ("être", ("en vacances", "on vacation")),
          ("avoir", ("le temps", "time")))


@pattern
def if_would(g):
    s = g.subject()
    verb, rest = g.pick(WISHES)
    fr_rest = "riches" if rest[0] == "riche" and s.number == "p" else rest[0]
    # English uses « were » for every person after if.
    fr = clause(s, verb, "have", ("impf", "past"), (fr_rest, ""))[0]
    condition = "si " + fr, "if %s %s %s" % (s.en, "were" if verb == "être" else "had", rest[1])
    if rest[0] in ("riche", "de l'argent"):
        result = purchase(g, pronoun_for(s), ("cond", "would"))
    else:
        result = plan(g, pronoun_for(s), ("cond", "would"), LEISURE)
    return condition[0] + ", " + result[0], condition[1] + ", " + result[1], "."


REASONS = (("être", "be", ("malade", "sick"), "a"), ("être", "be", ("fatigué", "tired"), "a"),
           ("avoir", "be", ("faim", "hungry"), ""),
           ("avoir", "be", ("froid", "cold"), ""), ("avoir", "be", ("peur", "afraid"), ""),
           ("être", "be", ("occupé", "busy"), "a"),
           ("avoir", "have", ("un rendez-vous", "an appointment"), ""),
           ("avoir", "be", ("sommeil", "sleepy"), ""),
           ("avoir", "have", ("un examen", "an exam"), ""))


@pattern
def because(g):
    s = g.subject()
    fr, en, rest, kind = g.pick(REASONS)
    reason_rest = (french.agree(rest[0], s.gender, s.number) if kind == "a" else rest[0], rest[1])
    past = g.chance(0.5)
    reason = clause(pronoun_for(s), fr, en, ("impf", "past") if past else ("pres", "pres"), reason_rest)
    choices = [("rester", "stay", ("à la maison", "at home"), "")]
    choices += [("venir", "come", ("", ""), "pas"), ("partir", "leave", ("tôt", "early"), "")]
    if rest[0] in ("malade", "fatigué", "sommeil"):
        choices += [("se coucher", "go to bed", ("tôt", "early"), ""),
                    ("travailler", "work", ("", ""), "pas")]
    if rest[0] in ("faim", "froid", "peur"):
        choices = [("manger", "eat", ("du pain", "some bread"), "")] if rest[0] == "faim" else \
            [("rentrer", "go home", ("", ""), ""), ("fermer", "close", ("la fenêtre", "the window"), ""),
             ("fermer", "close", ("la porte", "the door"), "")]
    if rest[0] == "froid" and g.chance(0.5):
        clothing = noun_phrase(nouns.noun(g.pick(("manteau", "pull", "écharpe"))), "poss", s.number, None,
                               s.person, s.gender == "f")
        choices = [("mettre", "put on", (clothing.fr, clothing.en), "")]
    vf, ve, vr, neg = g.pick(choices)
    if vr[0]:
        g.combine("vo", vf, vr[0].split()[-1])
    main = clause(s, vf, ve, ("pc", "past") if past else ("fut", "will"), vr, neg)
    return "%s parce que %s" % (main[0], reason[0]), "%s because %s" % (main[1], reason[1]), "."


@pattern
def when_future(g):
    """French has the future in both halves, English only in one."""
    s, t = g.pronoun(), g.subject(third=True)
    v = g.pick(verbs.among(verbs.MOTIONS, "partir arriver revenir"))
    when = clause(t, v.fr, v.en, ("fut", "pres"))
    w = g.pick([w for w in verbs.among(DOABLE, "préparer ouvrir fermer acheter regarder lire nettoyer")
                if w.en != "prepare for"])
    if w.fr in ("ouvrir", "fermer"):
        w = w._replace(objects=nouns.of("opening"))
    o = g.object_of(w, s, with_adjective=0.1)
    if t.en == s.en:
        return None
    main = clause(s, w.fr, w.en, ("fut", "will"), (o.fr, o.en))
    return "quand %s, %s" % (when[0], main[0]), "when %s, %s" % (when[1], main[1]), "."


OPINIONS = (("penser", "think"), ("croire", "believe"), ("savoir", "know"), ("espérer", "hope"),
            ("dire", "say"))


@pattern
def think_that(g):
    s, t = g.subject(), g.subject(third=True)
    fr, en = g.pick(OPINIONS)
    if t.fr in s.fr or (s.person in (2, 5) and t.fr in ("il", "elle", "ils", "elles")):
        return None
    lead = clause(s, fr, en, ("pres", "pres"))
    kind = g.number(0, 2)
    if kind == 0:
        a = g.pick(adjectives.TRAITS + adjectives.STATES[:6])
        inner = clause(t, "être", "be", ("pres", "pres"), (agreed(a, t), a.en))
        if fr == "espérer":
            return None
    elif kind == 1:
        v = g.pick(verbs.among(verbs.MOTIONS, "partir arriver sortir revenir venir"))
        inner = clause(t, v.fr, v.en, ("fut", "will"), g.pick(words.FUTURE_TIMES))
    else:
        v = g.pick(verbs.among(DOABLE, "acheter vendre perdre trouver lire visiter réparer oublier"))
        o = g.object_of(v, t, with_adjective=0.1)
        if fr == "espérer":
            return None
        inner = clause(t, v.fr, v.en, ("pc", "past"), (o.fr, o.en))
    return "%s que %s" % (lead[0], inner[0]), "%s that %s" % (lead[1], inner[1]), "."


MEANWHILE = {"écouter": "cuisiner marcher travailler courir étudier",
             "manger": "travailler parler étudier",
             "boire": "travailler cuisiner parler", "regarder": "cuisiner parler", "lire": "marcher"}


@pattern(topic=True)
def while_doing(g):
    s = g.subject()
    v = g.pick([v for v in DOABLE if v.fr in MEANWHILE])
    o = g.object_of(v, s, with_adjective=0.1)
    w = g.pick([w for w in verbs.INTRANSITIVES if w.fr in MEANWHILE[v.fr].split()])
    tenses = g.pick((("pres", "prog"), ("pc", "past")))
    main = clause(s, v.fr, v.en, tenses, (o.fr, o.en))
    return "%s en %s" % (main[0], french.gerund(w.fr)), "%s while %s" % (main[1], english.ing(w.en)), "."


@pattern(topic=True)
def before_doing(g):
    s = g.subject()
    v = g.pick(verbs.among(DOABLE, "lire fermer éteindre manger boire nettoyer finir mettre"))
    if v.fr == "fermer":
        v = v._replace(objects=nouns.of("opening"))
    o = g.object_of(v, s, with_adjective=0.1)
    w = g.pick([w for w in verbs.MOTIONS + verbs.REFLEXIVES + verbs.INTRANSITIVES if w.fr in
                ("partir", "sortir", "dormir", "travailler", "se coucher", "se reposer")])
    if v.fr == "mettre" and w.fr not in ("partir", "sortir", "travailler"):
        return None        # one does not dress to go to bed
    tenses = g.pick((("pc", "past"), ("fut", "will")))
    main = clause(s, v.fr, v.en, tenses, (o.fr, o.en))
    return ("%s avant de %s" % (main[0], french.infinitive(w.fr, s.person)),
            "%s before %s" % (main[1], english.ing(w.en)), ".")


PURPOSES = {"gare": (("prendre le train", "take the train"),),
            "boulangerie": (("acheter du pain", "buy some bread"),
            ("acheter un gâteau", "buy a cake"), ("acheter des croissants", "buy some croissants")),
            "marché": (("acheter des fruits", "buy some fruit"), ("acheter des tomates", "buy some tomatoes"),
                       ("acheter du fromage", "buy some cheese")),
            "bibliothèque": (("étudier", "study"), ("lire le journal", "read the newspaper"),
                             ("travailler", "work")),
            "piscine": (("nager", "swim"), ("se reposer", "rest")),
            "parc": (("courir", "run"), ("se promener", "take a walk"),
                                                                            ("jouer", "play")),
            "restaurant": (("manger une pizza", "eat a pizza"), ("rencontrer Paul", "meet Paul")),
            "poste": (("envoyer une lettre", "send a letter"),),
            "banque": (("changer de l'argent", "exchange some money"),),
            "cinéma": (("regarder un film", "watch a movie"),),
            "université": (("étudier", "study"), ("apprendre le français", "learn French"))}


@pattern(topic=True)
def in_order_to(g):
    s = g.subject()
    noun = nouns.noun(g.pick(sorted(PURPOSES)))
    fr, en = g.pick(PURPOSES[noun.lemma])
    if fr.startswith("se "):
        fr = french.infinitive(fr, s.person)
    if len(fr.split()) == 3:
        g.combine("vo", fr.split()[0], fr.split()[2].rstrip("s"))
    place = noun_phrase(noun, "def")
    tenses = g.pick((("pc", "past"), ("fut", "will"), ("pres", "prog")))
    return clause(s, "aller", "go", tenses, ("%s pour %s" % (french.contract("à", place.fr), fr),
                                             "to %s to %s" % (place.en, en))) + (".",)


@pattern(topic=True)
def remember(g):
    s = g.subject()
    thing = g.pick((g.phrase(g.pick(nouns.of("show", "event", "idea")), "dem", "s", 0.4), g.name(),
                    g.role("dem")))
    if thing.fr in s.fr:
        return None
    return clause(s, "se souvenir", "remember", g.pick((("pres", "pres"), ("fut", "will"))),
                  ("de " + thing.fr, thing.en), g.pick(("", "pas", "plus"))) + (".",)


@pattern(topic=True)
def wash_hands(g):
    """Body parts take the article in French and the possessive in English."""
    s = g.subject(young=True)
    fr, en, part, en_part = g.pick((("se laver", "wash", "les mains", "hands"),
                                    ("se brosser", "brush", "les dents", "teeth"),
                                    ("se laver", "wash", "les cheveux", "hair"),
                                    ("se brosser", "brush", "les cheveux", "hair"),
                                    ("se laver", "wash", "les pieds", "feet"),
                                    ("se casser", "break", "la jambe", "leg"),
                                    ("se casser", "break", "le bras", "arm"),
                                    ("se couper", "cut", "le doigt", "finger")))
    owner = "her" if s.gender == "f" and s.person == 2 else words.EN_POSSESSIVE[s.person]
    if s.number == "p" and en_part in ("leg", "arm", "finger"):
        return None
    tense = g.pick(("pc", "pc", "fut", "pres"))
    if tense == "pc":
        # The body part is the direct object, so the participle stays masculine singular.
        aux = french.conjugate("être", "pres", s.person)
        fr_text = "%s %s %s %s %s" % (s.fr, french.REFLEXIVE[s.person], aux, french.participle(fr), part)
        return at_times(g, (("ce matin", "this morning"), ("hier", "yesterday"), ("hier soir", "last night")),
                        (fr_text, english.clause(s.en, s.person, en, "past", owner + " " + en_part)),
                        0.1) + (".",)
    if fr in ("se casser", "se couper"):
        return None
    if tense == "fut":
        return clause(s, fr, en, ("fut", "will"),
                      (part + " ce soir", owner + " " + en_part + " tonight")) + (".",)
    return at_times(g, words.HABIT_TIMES[:3], clause(s, fr, en, ("pres", "pres"),
                                                     (part, owner + " " + en_part)), 0.1) + (".",)


@pattern
def all_of(g):
    noun = g.pick(nouns.of("fruit", "tool", "text", "building", "clothes", "idea", "show"))
    every = noun_phrase(noun, g.pick(("def", "dem", "poss")) if noun.cls in ("tool", "text", "clothes")
                        else g.pick(("def", "dem")),
                        "p", None, g.pick((0, 1, 3, 4)))
    a = g.adjective_for(noun)
    if not a or a.lemma in ("nouveau", "gros"):
        return None
    word = "toutes" if noun.gender == "f" else "tous"
    s = Phrase(word + " " + every.fr, "all " + every.en, every.gender, "p", 5)
    return clause(s, "être", "be", ("pres", "pres"), (agreed(a, every), a.en)) + (".",)


@pattern
def two_adjectives(g):
    """An adjective on each side of the noun: « une petite voiture rouge »."""
    s, noun = g.subject(), g.pick(nouns.of("clothes", "car", "bike", "furniture") + nouns.of("animal"))
    suiting = adjectives.suiting(noun)
    before = [a for a in suiting if a.before and a.lemma != "bon"]
    after = [a for a in suiting if a in adjectives.COLORS]
    if not before or not after:
        return None
    a, b = g.pick(before), g.pick(after)
    g.combine("na", noun.lemma, a.lemma)
    g.combine("na", noun.lemma, b.lemma)
    inner = noun_phrase(noun, "indef", "s", a)
    fr = inner.fr + " " + french.agree(b.lemma, noun.gender, "s", b.fem)
    en = english.article("%s %s %s" % (a.en, b.en, noun.en))
    v = g.pick((("avoir", "have", ("pres", "pres")), ("acheter", "buy", ("pc", "past")),
                ("voir", "see", ("pc", "past")),
                ("vouloir", "want", ("pres", "pres")), ("chercher", "look for", ("pres", "prog"))))
    if a.lemma == "vieux" and v[0] in ("acheter", "vouloir", "chercher") or not suits(noun, s):
        return None
    g.combine("vo", v[0], noun.lemma)
    return clause(s, v[0], v[1], v[2], (fr, en)) + (".",)


@pattern
def still_waiting(g):
    """Two people, two actions at once: « Marie lit pendant que Paul dort »."""
    s, t = g.pick((g.name(), g.relative(0))), g.pick((g.name(), g.relative(0)))
    if s.fr == t.fr:
        return None
    v = g.pick([v for v in verbs.among(LASTING, "lire manger boire regarder réparer nettoyer laver préparer "
                                                "dessiner") if v.en != "prepare for"])
    o = g.object_of(v, s, with_adjective=0.1)
    w = g.pick(verbs.among(verbs.INTRANSITIVES, "dormir travailler étudier chanter danser cuisiner"))
    past = g.chance(0.5)
    tenses = ("impf", "pastprog") if past else conj_present(v)
    first = clause(s, v.fr, v.en, tenses, (o.fr, o.en))
    second = clause(t, w.fr, w.en, ("impf", "pastprog") if past else ("pres", "prog"))
    return "%s pendant que %s" % (first[0], second[0]), "%s while %s" % (first[1], second[1]), "."


@pattern
def promise(g):
    s = g.subject()
    v = g.pick(verbs.among(DOABLE, "réparer nettoyer laver apporter finir acheter lire corriger"))
    noun = g.pick([n for n in v.objects if n.cls not in ("food", "drink")])
    g.combine("vo", v.fr, noun.lemma)
    thing = noun_phrase(noun, "def", "p" if noun.cls in ("pair", "fruit") else "s")
    fr_pron, en_pron = object_pronoun(thing.gender, thing.number)
    verb, rest = with_pronoun(v.en, en_pron)
    lead = g.pick((("oublier", "forget", ("pc", "past"), "de"), ("essayer", "try", ("pc", "past"), "de"),
                   ("promettre", "promise", ("pc", "past"), "de"),
                   ("continuer", "continue", ("pres", "pres"), "à")))
    if lead[0] == "continuer":
        if v.fr not in ("lire", "réparer", "nettoyer"):
            return None
        return clause(s, "commencer", "start", ("pc", "past"),
                      ("à %s %s" % (v.fr, thing.fr), "to %s %s" % (v.en, thing.en))) + (".",)
    if g.chance(0.4):
        return clause(s, lead[0], lead[1], lead[2], ("%s %s %s" % (lead[3], fr_pron, v.fr),
                                                     "to %s %s" % (verb, rest))) + (".",)
    return clause(s, lead[0], lead[1], lead[2], ("%s %s %s" % (lead[3], v.fr, thing.fr),
                                                 "to %s %s" % (v.en, thing.en))) + (".",)

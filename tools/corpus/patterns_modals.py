"""Patterns of modal verbs, orders and wishes: pouvoir, vouloir, devoir, il faut, savoir, the imperative.

Each French modal has one English counterpart here: peut = can, doit = must, devrait = should.
"""

from . import english, french, nouns, verbs, words
from .grammar import Phrase, clause, noun_phrase, object_pronoun, with_pronoun
from .patterns_actions import DOABLE, at_times
from .patterns_pronouns import LENT
from .registry import pattern

ORDERED = verbs.among(DOABLE, "manger lire acheter mettre prendre ouvrir fermer nettoyer laver réparer "
                              "apporter utiliser corriger choisir allumer éteindre jeter garder signer "
                              "finir regarder écouter couper essayer")
BARE = (verbs.among(verbs.INTRANSITIVES, "dormir travailler étudier chanter danser nager courir marcher") +
        verbs.named(verbs.REFLEXIVES, "se reposer", "se promener"))


# Nobody is told not to do these.
ALWAYS_RIGHT = ("finir commencer corriger préparer trouver nourrir nettoyer réparer apporter choisir "
                "travailler étudier marcher rester").split() + ["se reposer", "se promener"]


IDLE = [v.en for v in BARE] + ["stay", "go out"]      # no deadline for these


def action(g, subject, pool=DOABLE, intransitive=0.3, dets=None, barred=()):
    """(infinitive phrase, english base phrase) of something to do."""
    if g.chance(intransitive):
        v = g.pick([v for v in BARE + verbs.among(verbs.MOTIONS, "partir sortir rester")
                    if v.fr not in barred])
        return french.infinitive(v.fr, subject.person), v.en
    v = g.pick([v for v in pool if v.fr not in ("perdre", "oublier", "casser") and v.fr not in barred])
    o = g.object_of(v, subject, dets=dets, with_adjective=0.12)
    return v.fr + " " + o.fr, v.en + " " + o.en


def modal(g, fr_modal, fr_tense, en_modal, neg_ok=True):
    s = g.subject()
    neg = "pas" if neg_ok and g.chance(0.3) else ""
    fr_inf, en_base = action(g, s, dets=("def", "dem", "poss") if neg else None,
                             barred=ALWAYS_RIGHT if neg and en_modal == "should" else
                             ("chercher",) if neg else ())
    fr = clause(s, fr_modal, "be", (fr_tense, "pres"), (fr_inf, ""), neg)[0]
    head, _, tail = en_base.partition(" ")
    return s, fr, english.clause(s.en, s.person, head, en_modal, tail, bool(neg))


@pattern(topic=True)
def can(g):
    _, fr, en = modal(g, "pouvoir", "pres", "can")
    return fr, en, "."


@pattern
def can_question(g):
    s = g.pronoun(("je", "il", "elle", "ils", "elles"))
    fr_inf, en_base = action(g, s, ORDERED, 0.1)
    how = g.pick(("est-ce que", "inversion"))
    fr = clause(s, "pouvoir", "be", ("pres", "pres"), (fr_inf, ""), question=how)[0]
    please = g.pick((("", ""), (", s'il te plaît" if s.person == 1 else ", s'il vous plaît", ", please")))
    if s.person == 3 or en_base in IDLE:
        please = ("", "")
    return fr + please[0], english.clause(s.en, s.person, en_base, "can", question=True) + please[1], "?"


@pattern(topic=True)
def must(g):
    _, fr, en = modal(g, "devoir", "pres", "must", neg_ok=False)
    if en.endswith((" wine", " beer")):
        return None
    return fr, en, "."


@pattern(topic=True)
def should(g):
    _, fr, en = modal(g, "devoir", "cond", "should")
    return fr, en, "."


@pattern(topic=True)
def could(g):
    _, fr, en = modal(g, "pouvoir", "cond", "could", neg_ok=False)
    return fr, en, "."


@pattern(topic=True)
def want_to(g):
    s = g.subject()
    neg = "pas" if g.chance(0.3) else ""
    fr_inf, en_base = action(g, s, dets=("def", "dem", "poss") if neg else None)
    return clause(s, "vouloir", "want", g.pick((("pres", "pres"), ("pres", "pres"), ("impf", "past"))),
                  (fr_inf, "to " + en_base), neg) + (".",)


@pattern(topic=True)
def would_like_to(g):
    s = g.subject()
    fr_inf, en_base = action(g, s)
    return clause(s, "aimer", "like", ("cond", "would"), (fr_inf, "to " + en_base)) + (".",)


@pattern
def have_to(g):
    """« Il faut » + infinitive, addressed to everybody: you have to."""
    lead = g.pick((("il faut", "you have to"), ("il ne faut pas", "you must not")))
    fr_inf, en_base = action(g, Phrase("", "", person=2), ORDERED, 0.2, ("def", "part", "dem"),
                             ["mettre", "essayer"] + ([] if lead[0] == "il faut" else ALWAYS_RIGHT))
    time = g.pick((("", ""), ("maintenant", "now"), ("ce soir", "tonight"), ("avant midi", "before noon"),
                   ("demain", "tomorrow")))
    forbidden = lead[0] != "il faut"
    if fr_inf.startswith("garder") or time[0] == "avant midi" and (
            en_base in IDLE or forbidden and fr_inf.split()[0] not in ("partir", "manger", "ouvrir")):
        time = ("", "")
    if lead[0] != "il faut" and (fr_inf.split()[1:2] or [""])[0] in ("un", "une", "des", "du", "de"):
        return None
    return ("%s %s %s" % (lead[0], fr_inf, time[0])).strip(), ("%s %s %s" %
                                                               (lead[1], en_base, time[1])).strip(), "."


@pattern
def must_that(g):
    """« Il faut que » + subjunctive."""
    s = g.subject()
    lead = g.pick((("il faut que", "have to"), ("je veux que", None)))
    if g.chance(0.4):
        v = g.pick(BARE + verbs.among(verbs.MOTIONS, "partir arriver sortir rentrer revenir"))
        o = Phrase("", "")
    else:
        v = g.pick([v for v in DOABLE if v.fr in [w.fr for w in ORDERED]])
        o = g.object_of(v, s, with_adjective=0.1)
    fr = clause(s, v.fr, v.en, ("subj", "pres"), (o.fr, ""))[0]
    if lead[1] is None:
        if s.person in (0, 3):
            return None
        him = {"he": "him", "she": "her", "they": "them"}.get(s.en, s.en)
        return lead[0] + " " + fr, ("I want %s to %s %s" % (him, v.en, o.en)).strip(), "."
    return lead[0] + " " + fr, english.clause(s.en, s.person, "have", "pres",
                                              ("to " + v.en + " " + o.en).strip()), "."


SKILLS = (("nager", "swim"), ("danser", "dance"), ("cuisiner", "cook"), ("chanter", "sing"),
          ("conduire", "drive"),
          ("lire", "read"), ("écrire", "write"), ("dessiner", "draw"), ("jouer du piano", "play the piano"),
          ("jouer de la guitare", "play the guitar"), ("jouer aux échecs", "play chess"),
          ("réparer un vélo", "repair a bike"),
          ("faire du vélo", "ride a bike"), ("parler anglais", "speak English"),
          ("utiliser un ordinateur", "use a computer"))


@pattern(topic=True)
def know_how(g):
    s, (fr, en) = g.subject(young=True), g.pick(SKILLS)
    return clause(s, "savoir", "know how", ("pres", "pres"), (fr, "to " + en), g.pick(("", "pas"))) + (".",)


def order_end(g, person):
    please = ", s'il te plaît" if person == 1 else ", s'il vous plaît"
    return g.pick((("", "", "!"), ("", "", "."), (please, ", please", ".")))


@pattern
def order(g):
    person = g.pick((1, 4))
    v = g.pick(ORDERED)
    who = Phrase("", "", person=person)
    o = g.object_of(v, who, with_adjective=0.2)
    end = order_end(g, person)
    return french.conjugate(v.fr, "imp", person) + " " + o.fr + end[0], v.en + " " + o.en + end[1], end[2]


@pattern
def order_not(g):
    person, v = g.pick((1, 4)), g.pick([v for v in DOABLE if v.fr not in ALWAYS_RIGHT + ["chercher"]])
    who = Phrase("", "", person=person)
    o = g.object_of(v, who, with_adjective=0.15, dets=("def", "dem", "poss"))
    return ("ne %s pas %s" % (french.conjugate(v.fr, "imp", person), o.fr), "don't %s %s" % (v.en, o.en),
            g.pick((".", "!")))


@pattern
def order_pronoun(g):
    person = g.pick((1, 4))
    v = g.pick([v for v in ORDERED if v.fr not in ("manger", "écouter")])
    gender, number = g.pick((("m", "s"), ("f", "s"), ("m", "p")))
    if v.fr == "fermer" and gender == "f":
        return None        # « ferme-la » is a rude phrase of its own
    fr_pron, en_pron = object_pronoun(gender, number)
    verb, rest = with_pronoun(v.en, en_pron)
    extra = g.pick((("", ""), ("maintenant", "now"), ("demain", "tomorrow"), ("ce soir", "tonight"),
                    ("pour moi", "for me"),
                    ("avant midi", "before noon"), ("tout de suite", "right away")))
    if v.fr == "garder":
        extra = g.pick((("", ""), ("pour moi", "for me")))
    if g.chance(0.35):
        if v.fr in ALWAYS_RIGHT or extra[0] == "pour moi":
            return None
        return ("ne %s %s pas %s" % (fr_pron, french.conjugate(v.fr, "imp", person), extra[0])).strip(), \
            ("don't %s %s %s" % (verb, rest, extra[1])).strip(), "."
    return ("%s-%s %s" % (french.conjugate(v.fr, "imp", person), fr_pron, extra[0])).strip(), \
        ("%s %s %s" % (verb, rest, extra[1])).strip(), "!"


@pattern
def order_give(g):
    """« Donne-moi le livre », « Donne-le-moi »."""
    person = g.pick((1, 4))
    v = g.pick([v for v in verbs.GIVINGS if v.fr not in ("offrir", "rendre")])
    fr_me, en_me = g.pick((("moi", "me"), ("nous", "us")))
    classes = ("text", "gift") if v.fr == "envoyer" else ("text", "tool", "gift")
    noun = g.pick([n for n in nouns.of(*classes) if n.lemma != "jeu"
                   and (v.fr != "prêter" or n.lemma in LENT)])
    g.combine("vo", v.fr, noun.lemma)
    imperative = french.conjugate(v.fr, "imp", person)
    end = order_end(g, person)
    if g.chance(0.2):
        fr_it, en_it = object_pronoun(noun.gender, g.pick(("s", "p")))
        return "%s-%s-%s%s" % (imperative, fr_it, fr_me, end[0]), "%s %s to %s%s" % (v.en, en_it, en_me,
                                                                                     end[1]), end[2]
    det = g.pick(("def", "dem") if v.fr == "montrer" else ("def", "dem", "indef"))
    thing = noun_phrase(noun, det, "p" if g.chance(0.2) else "s")
    return "%s-%s %s%s" % (imperative, fr_me, thing.fr, end[0]), "%s %s %s%s" % (v.en, en_me, thing.en,
                                                                                 end[1]), end[2]


@pattern
def order_reflexive(g):
    person = g.pick((1, 4))
    v = g.pick([v for v in verbs.REFLEXIVES if v.fr not in ("se raser", "s'amuser", "se réveiller")])
    form = french.conjugate(v.fr, "imp", person)
    when = g.pick((("", ""), ("maintenant", "now"), ("tout de suite", "right away"), ("avec moi", "with me"),
                   ("un peu", "a little"))
                  if v.fr in ("se reposer", "se promener") else
                  (("", ""), ("maintenant", "now"), ("tout de suite", "right away")))
    if v.fr == "se dépêcher":
        return None
    if g.chance(0.4):
        pron = "te" if person == 1 else "vous"
        when = g.pick((("", ""), ("maintenant", "now"), ("ici", "here"), ("trop tard", "too late")))
        if v.fr != "se coucher" and v.fr != "se lever" and when[0] == "trop tard":
            return None
        return ("ne %s %s pas %s" % (pron, form, when[0])).strip(), ("don't %s %s" %
                                                                     (v.en, when[1])).strip(), "."
    pron = "toi" if person == 1 else "vous"
    return ("%s-%s %s" % (form, pron, when[0])).strip(), (v.en + " " + when[1]).strip(), "!"


@pattern
def order_be(g):
    person = g.pick((1, 4))
    form = french.conjugate("être", "imp", person)
    a = g.pick((("patient", "patient"), ("gentil", "kind"), ("poli", "polite"), ("prudent", "careful"),
                ("calme", "calm"),
                ("sérieux", "serious"), ("courageux", "brave"), ("généreux", "generous"),
                ("honnête", "honest"), ("prêt", "ready")))
    adjective = french.plural(a[0]) if person == 4 else a[0]
    to = " to " if a[0] in ("gentil", "poli") else " with "
    who = g.pick((("", ""),) + tuple((" avec " + n, to + n) for n in words.FEMALE + words.MALE) +
                 ((" avec tes amis" if person == 1 else " avec vos amis", to + "your friends"),))
    if a[0] in ("prudent", "prêt", "courageux", "sérieux", "calme"):
        who = ("", "")
    if g.chance(0.2) and a[0] not in ("prudent", "prêt"):
        return "%s plus %s%s" % (form, adjective, who[0]), "be %s%s" % (english.compare(a[1])[0], who[1]), "!"
    return "%s %s%s" % (form, adjective, who[0]), "be %s%s" % (a[1], who[1]), "!"


@pattern(topic=True)
def pronoun_infinitive(g):
    """« Je veux le lire » : the pronoun stands before the infinitive."""
    s = g.subject()
    v = g.pick([v for v in ORDERED if v.fr not in ("manger", "écouter", "regarder")])
    gender, number = g.pick((("m", "s"), ("f", "s"), ("m", "p")))
    fr_pron, en_pron = object_pronoun(gender, number)
    verb, rest = with_pronoun(v.en, en_pron)
    fr_modal, tense, en_modal = g.pick((("pouvoir", "pres", "can"), ("devoir", "pres", "must"),
                                        ("vouloir", "pres", "want"),
                                        ("aller", "pres", "going"), ("devoir", "cond", "should")))
    neg = "pas" if en_modal in ("can", "want", "going") and g.chance(0.3) else ""
    fr = clause(s, fr_modal, "be", (tense, "pres"), (fr_pron + " " + v.fr, ""), neg)[0]
    if en_modal == "want":
        en = english.clause(s.en, s.person, "want", "pres", "to %s %s" % (verb, rest), bool(neg))
    else:
        en = english.clause(s.en, s.person, verb, en_modal, rest, bool(neg))
    pair = fr, en
    if v.fr == "garder":
        return pair + (".",)
    return (at_times(g, words.FUTURE_TIMES[:1] + (("ce soir", "tonight"), ("maintenant", "now")), pair, 0)
            if g.chance(0.3) else pair) + (".",)

"""Patterns that do not go word for word: avoir faim, tu me manques, venir de, depuis, ça fait, fixed phrases.

The English side is written from its own idiom, so the verb often changes and subject and object may swap.
"""

from . import english, french, nouns, verbs, words
from .grammar import UNWANTED, Phrase, clause, noun_phrase, suits
from .patterns_actions import DOABLE, EVENTS, is_brief
from .phrases import FIXED
from .registry import pattern

FEELINGS = (("faim", "hungry"), ("soif", "thirsty"), ("froid", "cold"), ("chaud", "hot"), ("peur", "afraid"),
            ("sommeil", "sleepy"), ("raison", "right"), ("tort", "wrong"), ("honte", "ashamed"),
            ("de la chance", "lucky"))


@pattern(topic=True)
def have_feeling(g):
    s, (fr, en) = g.subject(young=True), g.pick(FEELINGS)
    lasting = fr in ("raison", "tort")       # a feeling passes, being right does not
    neg = g.pick(("", "", "pas") + (() if lasting else ("plus",))) if fr != "de la chance" else ""
    tenses = g.pick((("pres", "pres"), ("pres", "pres"), ("impf", "past"), ("fut", "will")))
    intensity = ("très ", "very ") if neg == "" and fr in ("faim", "soif", "froid", "chaud",
                                                           "peur") and g.chance(0.4) else ("", "")
    if neg == "plus":
        tenses = ("pres", "pres")
    return clause(s, "avoir", "be", tenses, (intensity[0] + fr, intensity[1] + en), neg) + (".",)


@pattern
def ask_feeling(g):
    s, (fr, en) = g.pronoun(("je",)), g.pick(FEELINGS)
    return clause(s, "avoir", "be", g.pick((("pres", "pres"), ("impf", "past"))), (fr, en),
                  question=g.pick(("est-ce que", "inversion", "tone"))) + ("?",)


@pattern(topic=True)
def afraid_of(g):
    s, noun = g.subject(young=True), g.pick(nouns.FRIGHTENING + (nouns.noun("médecin"),
                                                                  nouns.noun("dentiste"),
                                                                  nouns.noun("avion")))
    g.combine("vo", "avoir peur", noun.lemma)
    if noun.cls == "animal":
        fr, en = noun_phrase(noun, "def", "p").fr, noun.en_plural
    else:
        fr, en = noun_phrase(noun, "def").fr, {"avion": "flying"}.get(noun.lemma, "the " + noun.en)
    neg = "pas" if g.chance(0.3) else ""
    tenses = ("impf", "past") if g.chance(0.25) else ("pres", "pres")
    return clause(s, "avoir", "be", tenses, ("peur " + de_article(fr), "afraid of " + en), neg) + (".",)


def de_article(phrase):
    """« de » + definite article; contract() would take « des » for an article to drop."""
    if phrase.startswith("le "):
        return "du " + phrase[3:]
    if phrase.startswith("les "):
        return "des " + phrase[4:]
    return "de " + phrase


@pattern(topic=True)
def need(g):
    s = g.subject()
    noun = g.pick(nouns.of("resource", "tool", "clothes", "device", "food", "drink", "spice", "bike", "car"))
    if not suits(noun, s) or noun.lemma in ("bague", "jouet"):
        return None
    g.combine("vo", "avoir besoin", noun.lemma)
    if noun.cls in ("resource", "food", "drink", "spice"):
        rest = "besoin de " + noun.lemma, noun.en
    else:
        thing = g.phrase(noun, g.pick(("indef", "indef", "dem", "poss")), "s", 0.3, s,
                         UNWANTED + ("vieux", "cher"))
        rest = "besoin de " + thing.fr, thing.en
    tenses, neg = g.pick(((("pres", "pres"), ""), (("pres", "pres"), "pas"), (("fut", "will"), ""),
                          (("impf", "past"), "")))
    return clause(s, "avoir", "need", tenses, rest, neg) + (".",)


@pattern(topic=True)
def need_to(g):
    s, v = g.subject(), g.pick(verbs.among(verbs.INTRANSITIVES, "dormir travailler étudier") +
                               verbs.named(verbs.REFLEXIVES, "s'habiller", "se reposer") +
                               verbs.among(DOABLE, "acheter nettoyer laver réparer trouver chercher "
                                                   "vendre finir"))
    o = g.object_of(v, s, with_adjective=0.15) if v.objects else Phrase("", "")
    neg = "pas" if g.chance(0.25) and not o.fr.startswith(("un", "des", "du", "de la")) else ""
    fr_inf = ("de " + french.infinitive(v.fr, s.person) + " " + o.fr).strip()
    return clause(s, "avoir", "need", ("pres", "pres"),
                  ("besoin " + fr_inf, ("to " + v.en + " " + o.en).strip()), neg) + (".",)


ENJOYED = (verbs.among(verbs.INTRANSITIVES, "dormir travailler étudier chanter danser nager courir marcher "
                                            "pleurer rire") +
           verbs.named(verbs.REFLEXIVES, "se reposer", "se promener") +
           verbs.among(DOABLE, "manger boire lire regarder acheter écouter"))


@pattern(topic=True)
def feel_like(g):
    s, v = g.subject(young=True), g.pick(ENJOYED)
    o = g.object_of(v, s, with_adjective=0.1) if v.objects else Phrase("", "")
    neg = "pas" if g.chance(0.3) and not o.fr.startswith(("un", "des", "du", "de la")) else ""
    fr_inf = ("de " + french.infinitive(v.fr, s.person) + " " + o.fr).strip()
    tenses = g.pick((("pres", "pres"), ("impf", "past")))
    return clause(s, "avoir", "feel like", tenses,
                  ("envie " + fr_inf, (english.ing(v.en) + " " + o.en).strip()), neg) + (".",)


HURTS = ("tête", "dos", "ventre", "dent", "jambe", "bras", "main", "pied", "gorge", "œil", "oreille",
         "genou", "épaule")


@pattern(topic=True)
def hurts(g):
    s, noun = g.subject(young=True), nouns.noun(g.pick(HURTS))
    if s.number == "p" and s.fr != "vous":
        return None        # several people would have several heads in English
    plural = noun.lemma in ("dent", "œil", "jambe", "pied", "oreille",
                            "genou") and (noun.lemma in ("dent", "œil") or g.chance(0.5))
    part = noun_phrase(noun, "def", "p" if plural else "s")
    fr = "mal " + french.contract("à", part.fr)
    owner = "her" if s.gender == "f" and s.person == 2 else words.EN_POSSESSIVE[s.person]
    core = noun.en_plural if plural else noun.en
    past = g.chance(0.3)
    time = g.pick((("depuis hier", None), ("", ""), ("ce soir", "tonight"),
                   ("aujourd'hui", "today"))) if not past else \
        g.pick((("hier", "yesterday"), ("ce matin", "this morning"), ("", "")))
    if time[1] is None:
        verb = "have" if plural else "has"
        en = "%s %s %s been hurting since yesterday" % (owner_of(s, owner), core, verb)
    else:
        verb = "hurt" if past or plural else "hurts"
        en = ("%s %s %s %s" % (owner_of(s, owner), core, verb, time[1])).strip()
    fr_text = clause(s, "avoir", "have", ("impf" if past else "pres", "pres"),
                     ((fr + " " + time[0]).strip(), ""))[0]
    return fr_text, en, "."


def owner_of(subject, owner):
    """Marie's head, his head: the sufferer becomes the possessor."""
    return subject.en + "'s" if subject.lemma else owner


@pattern
def i_miss(g):
    """« Tu me manques » : who is missed is the French subject and the English object."""
    missed = g.pick((Phrase("tu", "you", person=1), Phrase("vous", "you", person=4, number="p"), g.name(),
                     g.name(), g.relative(0),
                     g.relative(0), Phrase("ils", "them", person=5, number="p"), Phrase("elle", "her", "f"),
                     Phrase("il", "him"),
                     Phrase("la mer", "the sea", "f"), Phrase("mon pays", "my country"),
                     Phrase("ma famille", "my family", "f"),
                     Phrase("le soleil", "the sun"), Phrase("mes amis", "my friends", person=5, number="p")))
    misser = g.pick(((0, "me", "I"), (3, "nous", "we"), (4, "vous", "you"), (1, "te", "you")))
    mine = missed.fr.split()[0] in ("mon", "ma", "mes")
    same = misser[0] == missed.person or {misser[0], missed.person} == {1, 4}
    if same or mine and misser[0] != 0:
        return None
    tenses = g.pick((("pres", "pres"), ("fut", "will"), ("pc", "past")))
    extra = g.pick((("", ""), ("beaucoup", "a lot")))
    neg = "pas" if not extra[0] and g.chance(0.2) else ""
    fr = clause(missed, "manquer", "miss", (tenses[0], "pres"), extra if tenses[0] != "pc" else ("", ""),
                neg, misser[1],
                adverb=extra if tenses[0] == "pc" else ("", ""))[0]
    en = english.clause(misser[2], misser[0], "miss", tenses[1], (missed.en + " " + extra[1]).strip(),
                        bool(neg))
    return fr, en, "."


@pattern
def someone_misses(g):
    """« Marie manque à son frère » : her brother misses Marie."""
    missed, who = g.name(), g.pick((g.relative(0), g.role(), g.name()))
    if missed.fr == who.fr:
        return None
    fr = clause(missed, "manquer", "miss", ("pres", "pres"), ("beaucoup " + french.contract("à", who.fr)
                                                            if g.chance(0.4)
                                                              else french.contract("à", who.fr), ""))[0]
    en = english.clause(who.en, who.person, "miss", "pres",
                        missed.en + (" a lot" if "beaucoup" in fr else ""))
    return fr, en, "."


@pattern
def pleases(g):
    """« Ce film me plaît » : I like this movie."""
    noun = g.pick(nouns.of("show", "text", "writing", "clothes", "furniture", "gift", "building", "car",
                           "pair"))
    thing = g.phrase(noun, g.pick(("dem", "dem", "poss")) if noun.cls in ("clothes", "car", "pair")
                     else "dem",
                     "p" if noun.cls in ("gift", "text") and g.chance(0.25) else "s", 0.45,
                     Phrase("", "", person=g.pick((1, 4))))
    person, fr_pron, en = g.pick(((0, "me", "I"), (3, "nous", "we"), (0, "me", "I"), (4, "vous", "you"),
                                  (1, "te", "you")))
    if person in (1, 4) and thing.en.startswith("your"):
        return None
    neg = g.pick(("", "", "pas"))
    extra = ("beaucoup", "a lot") if not neg and g.chance(0.35) else ("", "")
    fr = clause(thing, "plaire", "like", ("pres", "pres"), (extra[0], ""), neg, fr_pron)[0]
    return fr, english.clause(en, person, "like", "pres", (thing.en + " " + extra[1]).strip(), bool(neg)), "."


@pattern(topic=True)
def just_did(g):
    s = g.subject()
    if g.chance(0.35):
        v, o = g.pick(verbs.among(verbs.MOTIONS, "partir arriver sortir") +
                      verbs.named(verbs.REFLEXIVES, "se lever", "se coucher", "se réveiller", "s'habiller") +
                      verbs.among(verbs.MOTIONS, "revenir")), Phrase("", "")
    else:
        v = g.pick([v for v in DOABLE if v.fr not in "porter garder chercher utiliser conduire".split()])
        o = g.object_of(v, s, with_adjective=0.15)
    fr = clause(s, "venir", "come", ("pres", "pres"),
                (("de " + french.infinitive(v.fr, s.person) + " " + o.fr).strip(), ""))[0]
    return fr, english.clause(s.en, s.person, v.en, "past", o.en, adverb="just"), "."


@pattern(topic=True)
def in_the_middle_of(g):
    s = g.subject(young=True)
    v = g.pick(tuple(v for v in EVENTS if v.fr not in ("porter", "prendre", "visiter", "choisir")) +
               verbs.among(verbs.INTRANSITIVES, "dormir travailler étudier chanter danser") +
               verbs.among(verbs.REFLEXIVES, "s'habiller"))
    if v.fr in ("conduire", "louer", "signer") and s.lemma in ("enfant", "garçon", "fille", "élève"):
        return None
    o = g.object_of(v, s, with_adjective=0.1) if v.objects else Phrase("", "")
    past = g.chance(0.25)
    rest = ("en train de " + french.infinitive(v.fr, s.person) + " " + o.fr).strip()
    fr = clause(s, "être", "be", ("impf" if past else "pres", "pres"), (rest, ""))[0]
    return fr, english.clause(s.en, s.person, v.en, "pastprog" if past else "prog", o.en), "."


SPANS = (("deux heures", "two hours"), ("une heure", "an hour"), ("trois jours", "three days"),
         ("une semaine", "a week"),
         ("six mois", "six months"), ("dix ans", "ten years"), ("cinq ans", "five years"),
         ("longtemps", "a long time"),
         ("vingt minutes", "twenty minutes"))
LONG_SPANS = SPANS[2:8]


@pattern(topic=True)
def since(g):
    s = g.subject()
    kind = g.pick(("live", "work", "wait", "learn", "do", "know"))
    if kind == "live":
        city = g.pick(words.CITIES)
        fr, en, tense, rest = "habiter", "live", "perfprog", ("à " + city[0], "in " + city[1])
    elif kind == "work":
        place = noun_phrase(nouns.noun(g.pick("gare hôpital banque supermarché boulangerie".split())), "dem")
        fr, en, tense, rest = "travailler", "work", "perfprog", ("dans " + place.fr, "in " + place.en)
    elif kind == "learn":
        language = g.pick(words.LANGUAGES)
        fr, en, tense, rest = "apprendre", "learn", "perfprog", (french.elide("le " + language[0]),
                                                                 language[1])
    elif kind == "know":
        who = g.name()
        if who.fr in s.fr:
            return None
        fr, en, tense, rest = "connaître", "know", "perf", (who.fr, who.en)
    elif kind == "wait":
        what = g.pick((("le bus", "the bus"), ("le train", "the train"), ("le médecin", "the doctor")))
        fr, en, tense, rest = "attendre", "wait for", "perfprog", what
    else:
        v = g.pick(verbs.among(verbs.INTRANSITIVES, "dormir travailler étudier chanter danser"))
        fr, en, tense, rest = v.fr, v.en, "perfprog", ("", "")
    short = kind in ("wait", "do")
    if g.chance(0.7):
        span = g.pick((SPANS[:2] + SPANS[8:]) if short else LONG_SPANS)
        when = "depuis " + span[0], "for " + span[1]
    else:
        point = g.pick((("ce matin", "this morning"), ("midi", "noon")) if short else
                       (("janvier", "January"), ("l'été dernier", "last summer"),
                        ("l'année dernière", "last year")))
        when = "depuis " + point[0], "since " + point[1]
    return clause(s, fr, en, ("pres", tense), ((rest[0] + " " + when[0]).strip(),
                                               (rest[1] + " " + when[1]).strip())) + (".",)


@pattern
def it_has_been(g):
    s, span = g.subject(), g.pick(LONG_SPANS)
    if g.chance(0.5):
        city = g.pick(words.CITIES)
        inner = clause(s, "habiter", "live", ("pres", "perfprog"), ("à " + city[0], "in " + city[1]))
        return "ça fait %s que %s" % (span[0], inner[0]), "%s for %s" % (inner[1], span[1]), "."
    language = g.pick(words.LANGUAGES)
    inner = clause(s, "apprendre", "learn", ("pres", "perfprog"),
                   (french.elide("le " + language[0]), language[1]))
    return "ça fait %s que %s" % (span[0], inner[0]), "%s for %s" % (inner[1], span[1]), "."


@pattern(topic=True)
def ago(g):
    s = g.subject()
    v = g.pick(verbs.among(DOABLE, "acheter vendre perdre trouver visiter louer lire réparer commencer "
                                   "finir") +
               verbs.among(verbs.MOTIONS, "partir arriver") + verbs.among(verbs.MOTIONS, "revenir"))
    o = g.object_of(v, s, with_adjective=0.1) if v.objects else Phrase("", "")
    # Nobody recalls after years the apples they bought, and a visit is spoken of days later.
    short = is_brief(v, o) or v.fr in ("perdre", "trouver", "commencer", "finir", "réparer", "lire")
    span = g.pick(SPANS[:3] + SPANS[8:] if short else LONG_SPANS)
    return clause(s, v.fr, v.en, ("pc", "past"), ((o.fr + " il y a " + span[0]).strip(),
                                                  (o.en + " " + span[1] + " ago").strip())) + (".",)


@pattern
def fixed_phrase(g):
    fr, en = g.pick(FIXED).split("|")
    mark = fr[-1]
    return fr[:-1].rstrip(), en[:-1], mark


@pattern
def exclaim(g):
    noun = g.pick(nouns.of("show", "building", "outdoors", "gift", "clothes", "animal", "idea"))
    a = g.adjective_for(noun)
    if not a or not a.before or a.lemma in ("nouveau", "gros", "long"):
        return None
    thing = noun_phrase(noun, "", "s", a)
    which = "quelle" if noun.gender == "f" else "quel"
    return which + " " + thing.fr, "what " + english.article(thing.en), "!"


@pattern
def polite_request(g):
    s = g.pick((Phrase("je", "I", person=0), Phrase("nous", "we", person=3, number="p")))
    noun = g.pick(nouns.of("drink", "food", "dish", "fruit", "clothes", "gift"))
    g.combine("vo", "vouloir", noun.lemma)
    thing = g.phrase(noun, "part" if noun.cls in ("drink", "food") else "indef",
                     "p" if noun.cls == "fruit" else "s", 0.35,
                     without=UNWANTED + ("vieux", "cher"))
    please = g.pick((("", ""), (", s'il vous plaît", ", please")))
    pair = clause(s, "vouloir", "like", ("cond", "would"), (thing.fr, thing.en))
    return pair[0] + please[0], pair[1] + please[1], "."

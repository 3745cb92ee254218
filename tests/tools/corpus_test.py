"""Tests of the corpus generator: its morphology against literal forms, and the files it has written."""

import functools
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

from corpus import (adjectives, build, checks, english, french, nouns, registry, splits, verbs,  # noqa: E402
                    words)

DATA = ROOT / "data" / "everyday"


GENERATED = ("train.tsv", "valid.tsv", "test.tsv")


@functools.lru_cache(maxsize=None)
def pairs(name):
    text = (DATA / name).read_bytes().decode("utf-8")
    return [tuple(line.split("\t")) for line in text.splitlines()]


def forms(lemma):
    """The shapes that a headword of the lexicon can take in a sentence."""
    found = {lemma, french.plural(lemma)} | {n.plural for n in nouns.NOUNS if n.lemma == lemma}
    for a in adjectives.ADJECTIVES:
        if a.lemma == lemma:
            found |= {french.agree(lemma, gender, number, a.fem) for gender in "mf" for number in "sp"}
    if lemma in verbs.LEMMAS:
        found.add(french.participle(lemma))
        found.add(french.bare(lemma))
        # Impersonal verbs have no first person.
        persons = (2,) if lemma in ("falloir", "pleuvoir", "neiger") else range(6)
        found |= {french.conjugate(lemma, tense, person) for tense in ("pres", "impf", "fut", "cond", "subj")
                  for person in persons}
    return {form.lower() for form in found}


class Conjugation(unittest.TestCase):
    def test_irregular_and_spelling_changes(self):
        expected = {
            ("être", "pres", 0): "suis", ("être", "impf", 3): "étions", ("être", "fut", 2): "sera",
            ("être", "subj", 4): "soyez", ("être", "imp", 1): "sois", ("avoir", "fut", 0): "aurai",
            ("avoir", "subj", 2): "ait", ("aller", "pres", 5): "vont", ("aller", "fut", 0): "irai",
            ("aller", "imp", 1): "va", ("aller", "subj", 0): "aille", ("faire", "pres", 4): "faites",
            ("faire", "impf", 0): "faisais", ("faire", "cond", 5): "feraient",
                    ("venir", "fut", 5): "viendront",
            ("venir", "subj", 3): "venions", ("pouvoir", "cond", 0): "pourrais",
                    ("vouloir", "cond", 0): "voudrais",
            ("savoir", "fut", 2): "saura", ("devoir", "pres", 5): "doivent", ("voir", "fut", 0): "verrai",
            ("prendre", "subj", 2): "prenne", ("boire", "impf", 2): "buvait",
                    ("recevoir", "pres", 2): "reçoit",
            ("envoyer", "fut", 0): "enverrai", ("courir", "fut", 2): "courra",
                    ("mourir", "cond", 2): "mourrait",
            ("acheter", "pres", 0): "achète", ("acheter", "fut", 3): "achèterons",
                    ("appeler", "pres", 5): "appellent",
            ("appeler", "pres", 3): "appelons", ("jeter", "fut", 0): "jetterai",
                    ("préférer", "pres", 2): "préfère",
            ("préférer", "fut", 2): "préférera", ("manger", "pres", 3): "mangeons",
                    ("manger", "impf", 3): "mangions",
            ("commencer", "impf", 0): "commençais", ("commencer", "impf", 4): "commenciez",
            ("payer", "pres", 0): "paie", ("nettoyer", "fut", 0): "nettoierai",
                    ("finir", "subj", 0): "finisse",
            ("vendre", "pres", 2): "vend", ("ouvrir", "imp", 1): "ouvre", ("se lever", "fut", 0): "lèverai",
            ("éteindre", "impf", 2): "éteignait", ("connaître", "pres", 2): "connaît"}
        for (verb, tense, person), form in expected.items():
            self.assertEqual(french.conjugate(verb, tense, person), form, (verb, tense, person))

    def test_participles(self):
        for verb, form in (("mettre", "mis"), ("ouvrir", "ouvert"), ("naître", "né"), ("vivre", "vécu"),
                           ("lire", "lu"),
                           ("s'habiller", "habillé"), ("vendre", "vendu"), ("finir", "fini"),
                           ("écrire", "écrit")):
            self.assertEqual(french.participle(verb), form)
        self.assertEqual(french.agree_participle("écrit", "f", "p"), "écrites")
        self.assertEqual(french.agree_participle("mis", "m", "p"), "mis")

    def test_english(self):
        self.assertEqual(english.third("watch"), "watches")
        self.assertEqual(english.third("try on"), "tries on")
        self.assertEqual(english.ing("put on"), "putting on")
        self.assertEqual(english.past("throw away"), "threw away")
        self.assertEqual(english.clause("she", 2, "be", "pres", "tired", True), "she isn't tired")
        self.assertEqual(english.clause("he", 2, "read", "pres", "books", question=True),
                         "does he read books")
        self.assertEqual(english.clause("I", 0, "see", "perf", "it", adverb="never"), "I have never seen it")
        self.assertEqual(english.compare("heavy"), ("heavier", "heaviest"))
        self.assertEqual(english.compare("good")[0], "better")
        self.assertEqual(english.article("umbrella"), "an umbrella")
        self.assertEqual(english.article("university"), "a university")


class Agreement(unittest.TestCase):
    def test_adjectives(self):
        for form, arguments in (("belle", ("beau", "f", "s", "belle")),
                                ("beaux", ("beau", "m", "p", "belle")),
                                ("bel", ("beau", "m", "s", "belle", "oiseau")),
                                ("beau", ("beau", "m", "s", "belle", "hamster")),
                                ("vieil", ("vieux", "m", "s", "vieille", "hôtel")),
                                ("heureuses", ("heureux", "f", "p")),
                                ("chère", ("cher", "f", "s")), ("sportives", ("sportif", "f", "p")),
                                ("gris", ("gris", "m", "p")), ("marron", ("marron", "f", "p", "="))):
            self.assertEqual(french.agree(*arguments), form)

    def test_plurals(self):
        for singular, plural in (("cheval", "chevaux"), ("gâteau", "gâteaux"), ("genou", "genoux"),
                                 ("bras", "bras"),
                                 ("jeu", "jeux"), ("livre", "livres")):
            self.assertEqual(french.plural(singular), plural)
        self.assertEqual(nouns.noun("œil").plural, "yeux")
        self.assertEqual(nouns.noun("étagère").en_plural, "shelves")


class Elision(unittest.TestCase):
    def test_sentences(self):
        for plain, elided in (("je aime le eau", "j'aime l'eau"), ("si il vient", "s'il vient"),
                              ("ce est parce que elle ne a pas de huile",
                               "c'est parce qu'elle n'a pas d'huile"),
                              ("le haricot et le hôtel", "le haricot et l'hôtel"),
                              ("le onze mai", "le onze mai"),
                              ("je y vais", "j'y vais"), ("si elle vient", "si elle vient")):
            self.assertEqual(french.elide(plain), elided)

    def test_determiners(self):
        self.assertEqual(french.contract("à", "le parc"), "au parc")
        self.assertEqual(french.contract("de", "les enfants"), "des enfants")
        self.assertEqual(french.contract("à", "l'école"), "à l'école")
        self.assertEqual(french.determine("poss", "f", "s", "amie", 0), "mon amie")
        self.assertEqual(french.determine("dem", "m", "s", "homme"), "cet homme")
        self.assertEqual(french.determine("dem", "m", "s", "hamster"), "ce hamster")
        self.assertEqual(french.determine("part", "m", "s", "pain"), "du pain")
        self.assertEqual(french.determine("part", "f", "s", "eau"), "de l'eau")

    def test_numbers(self):
        for n, word in ((21, "vingt et un"), (71, "soixante et onze"), (80, "quatre-vingts"),
                        (81, "quatre-vingt-un"),
                        (99, "quatre-vingt-dix-neuf"), (200, "deux cents"),
                        (275, "deux cent soixante-quinze")):
            self.assertEqual(words.french_number(n), word)

    def test_checks_catch_errors(self):
        for text in ("Je bois le eau.", "Je vais à le parc.", "Si il pleut.", "Ce homme rit.", "Tu viens?",
                     "Il y  a."):
            self.assertIsNotNone(checks.find(checks.FRENCH, text), text)
        for text in ("I see a apple.", "An book.", "The the dog.", "Why ?"):
            self.assertIsNotNone(checks.find(checks.ENGLISH, text), text)


class Files(unittest.TestCase):
    def test_files_are_what_the_generator_writes(self):
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "make-corpus"), "--check"],
                              stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr.decode("utf-8"))

    def test_counts(self):
        self.assertGreaterEqual(len(build.lemmas()), 600)
        self.assertGreaterEqual(len(registry.load()), 60)
        self.assertGreaterEqual(sum(len(pairs(n)) for n in GENERATED), 30000)
        self.assertEqual(len(pairs("valid.tsv")), 1000)
        self.assertEqual(len(pairs("test.tsv")), 1000)

    def test_every_counted_lemma_occurs(self):
        text = " ".join(p[0].lower() for n in GENERATED for p in pairs(n))
        # Both readings of a word with an apostrophe: aujourd'hui, and l'eau.
        known = set(re.findall(r"[\w'-]+", text)) | set(re.findall(r"[\w-]+", text))
        self.assertEqual([lemma for lemma in build.lemmas()
                          if not any(form in known or " " in form and form in text for form in forms(lemma))],
                         [])

    def test_natural_files(self):
        self.assertEqual((len(pairs("natural-train.tsv")), len(pairs("natural-test.tsv"))), (560, 200))
        for side in (0, 1):
            train, test = ({splits.key(p[side]) for p in pairs(n)}
                           for n in ("natural-train.tsv", "natural-test.tsv"))
            generated = {splits.key(p[side]) for n in GENERATED for p in pairs(n)}
            self.assertFalse(train & test)
            self.assertFalse((train | test) & generated)

    def test_splits_are_disjoint(self):
        for side in (0, 1):
            seen = [{splits.key(p[side]) for p in pairs(n)} for n in GENERATED]
            self.assertFalse(seen[0] & seen[1] | seen[0] & seen[2] | seen[1] & seen[2])

    def test_one_translation_for_a_source(self):
        sources = [p[0] for n in GENERATED for p in pairs(n)]
        self.assertEqual(len(sources), len(set(sources)))

    def test_every_test_word_occurs_in_train(self):
        for side in (0, 1):
            known = {t for p in pairs("train.tsv") for t in splits.tokens(p[side])}
            self.assertEqual([t for p in pairs("test.tsv") for t in splits.tokens(p[side])
                              if t not in known], [])

    def test_pretraining_text_holds_no_test_sentence(self):
        held = {splits.key(text) for n in ("valid.tsv", "test.tsv", "natural-test.tsv", "unseen.tsv")
                for p in pairs(n) for text in p}
        for name in ("mono.fr.txt", "mono.en.txt", "bilingual.txt"):
            for (line,) in pairs(name):
                self.assertTrue(held.isdisjoint(splits.sentences(line)), line)

    def test_sentences_are_found_in_a_line(self):
        self.assertEqual(splits.sentences("Marc a dit : « Où es-tu ? » Cela veut dire : \"Where are you?\""),
                         {"marc a dit", "où es-tu", "cela veut dire", "where are you"})
        self.assertEqual(splits.sentences("Il dort. Elle lit. — He's sleeping. She's reading."),
                         {"il dort", "elle lit", "he's sleeping", "she's reading"})
        self.assertEqual(splits.sentences("He is sleeping. (Il dort.)"), {"he is sleeping", "il dort"})

    def test_unseen_sentences_are_in_no_file_that_a_model_is_trained_on(self):
        unseen = {splits.key(text) for p in pairs("unseen.tsv") for text in p}
        self.assertEqual(len(unseen), 40)
        for name in ("train.tsv", "natural-train.tsv"):
            self.assertTrue(unseen.isdisjoint(splits.key(text) for p in pairs(name) for text in p))


if __name__ == "__main__":
    unittest.main()

"""Tests of tools/get-data on made-up sentences: over HTTP from this machine, from folders, through apt."""

import bz2
import errno
import functools
import gzip
import http.server
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "tools" / "get-data"
sys.dont_write_bytecode = True


def load():
    """The script as a module, for its functions."""
    loader = importlib.machinery.SourceFileLoader("get_data", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("get_data", loader))
    loader.exec_module(module)
    return module


get_data = load()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Stalling(http.server.BaseHTTPRequestHandler):
    """Promises more bytes than it sends: closes at once for /short, keeps the client waiting otherwise."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(bz2.compress(b"1\t2\n")[:20])
        self.wfile.flush()
        if not self.path.startswith("/short"):
            self.server.asked.set()
            self.server.over.wait(10)

    def log_message(self, *_):
        pass


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.into = self.folder / "data"

    def put(self, name, data):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
        return path

    def serve(self, handler=None):
        """The address of a server of self.folder/www."""
        handler = handler or functools.partial(Quiet, directory=str(self.folder / "www"))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.asked, server.over, server.daemon_threads = threading.Event(), threading.Event(), True
        # A short poll, for shutdown waits for the next one.
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        for step in (thread.join, server.server_close, server.shutdown, server.over.set):
            self.addCleanup(step)
        self.server = server
        return "http://127.0.0.1:%d" % server.server_port

    def command(self, *arguments):
        return [sys.executable, str(SCRIPT), *map(str, arguments), "--into", str(self.into)]

    def environment(self, settings):
        # A proxy of the machine must not come between the script and 127.0.0.1.
        kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        return dict(kept, **settings)

    def run_script(self, *arguments, code=0, **settings):
        done = subprocess.run(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=self.environment(settings), timeout=30)
        said = done.stderr.decode("utf-8")
        self.assertEqual(done.returncode, code, said)
        self.assertEqual(done.stdout, b"")
        self.assertNotIn("Traceback", said)
        self.assertNotIn("\r", said)
        return said

    def splits(self, name):
        """The pairs of the three files, whose form is checked on the way."""
        files = sorted(path.name for path in (self.into / name).iterdir())
        self.assertEqual(files, ["test.tsv", "train.tsv", "valid.tsv"])
        found = {}
        for split in ("train", "valid", "test"):
            text = (self.into / name / (split + ".tsv")).read_bytes().decode("utf-8")
            self.assertTrue(text.endswith("\n"))
            self.assertNotIn("\r", text)
            found[split] = [tuple(line.split("\t")) for line in text[:-1].split("\n")]
            for pair in found[split]:
                self.assertEqual(len(pair), 2)
                self.assertEqual([side.strip() for side in pair], list(pair))
                self.assertTrue(all(pair))
        return found

    def assert_nothing_written(self):
        self.assertEqual([str(path) for path in self.into.rglob("*") if path.is_file()], [])


def numbered(count, start=0):
    return [("La boîte numéro %d est bleue." % n, "Box number %d is blue." % n)
            for n in range(start, start + count)]


def tsv(pairs):
    return "".join("%s\t%s\n" % pair for pair in pairs)


def side(pairs, index):
    return "".join(pair[index] + "\n" for pair in pairs)


class Tatoeba(Case):
    def publish(self, french, english, links):
        def pack(rows):
            return bz2.compress("".join("\t".join(map(str, row)) + "\n" for row in rows).encode("utf-8"))
        self.put("www/fra/fra_sentences.tsv.bz2", pack((i, "fra", text) for i, text in french))
        self.put("www/eng/eng_sentences.tsv.bz2", pack((i, "eng", text) for i, text in english))
        self.links = self.put("www/fra/fra-eng_links.tsv.bz2", pack(links))

    def publish_numbered(self, count):
        pairs = numbered(count)
        self.publish([(1000 + n, pair[0]) for n, pair in enumerate(pairs)],
                     [(5000 + n, pair[1]) for n, pair in enumerate(pairs)],
                     [(1000 + n, 5000 + n) for n in range(count)])
        return pairs

    def test_splits_over_http(self):
        pairs = self.publish_numbered(200)
        said = self.run_script("tatoeba", CALQUE_TATOEBA_URL=self.serve())
        found = self.splits("tatoeba")
        self.assertEqual({name: len(found[name]) for name in found}, {"train": 160, "valid": 20, "test": 20})
        self.assertEqual(sorted(sum(found.values(), [])), sorted(pairs))
        self.assertIn("licence of tatoeba: CC BY 2.0 FR", said)
        self.assertRegex(said, r"tatoeba/\{train,valid,test\}\.tsv: 160 / 20 / 20 pairs\n$")

    def test_one_translation_a_sentence_with_the_lowest_id(self):
        french = [(1, "Le chat dort."), (2, "La chatte dort."), (3, " Il  neige. "), (4, "Il neige."),
                  (9, "Oui.")]
        english = [(11, "The cat sleeps."), (12, "The cat is asleep."), (13, "It is snowing."),
                   (14, "It snows."), (19, "Yes.")]
        rest = numbered(4)
        french += [(100 + n, pair[0]) for n, pair in enumerate(rest)]
        english += [(200 + n, pair[1]) for n, pair in enumerate(rest)]
        links = [(1, 12), (1, 11), (2, 11), (3, 13), (4, 14), (9, 77), (9, 19)]
        self.publish(french, english, links + [(100 + n, 200 + n) for n in range(4)])
        self.run_script("tatoeba", CALQUE_TATOEBA_URL=self.serve())
        expected = [("Le chat dort.", "The cat sleeps."), ("Il neige.", "It is snowing."), ("Oui.", "Yes.")]
        self.assertEqual(sorted(sum(self.splits("tatoeba").values(), [])), sorted(expected + rest))

    def test_not_there(self):
        self.publish_numbered(30)
        self.links.unlink()
        address = self.serve()
        said = self.run_script("tatoeba", code=1, CALQUE_TATOEBA_URL=address)
        self.assertIn(address + "/fra/fra-eng_links.tsv.bz2: HTTP error 404", said)
        self.assertIn("--from DIR", said)
        self.assert_nothing_written()

    def test_no_server(self):
        said = self.run_script("tatoeba", code=1, CALQUE_TATOEBA_URL="http://127.0.0.1:1/x")
        self.assertIn("http://127.0.0.1:1/x/fra/fra-eng_links.tsv.bz2: download failed: ", said)
        self.assertIn("--from DIR", said)
        self.run_script("tatoeba", code=1, CALQUE_TATOEBA_URL="nonsense")

    def test_truncated_archive(self):
        self.publish_numbered(300)
        path = self.folder / "www/eng/eng_sentences.tsv.bz2"
        path.write_bytes(path.read_bytes()[:-40])
        said = self.run_script("tatoeba", code=1, CALQUE_TATOEBA_URL=self.serve())
        self.assertIn("/eng/eng_sentences.tsv.bz2: damaged or truncated", said)
        self.assertIn("--from DIR", said)
        self.assert_nothing_written()

    def test_not_an_archive(self):
        self.publish_numbered(30)
        self.links.write_bytes(b"<html>Back soon</html>")
        said = self.run_script("tatoeba", code=1, CALQUE_TATOEBA_URL=self.serve())
        self.assertIn("fra-eng_links.tsv.bz2: damaged or truncated", said)

    def test_connection_that_ends_early(self):
        said = self.run_script("tatoeba", code=1, CALQUE_TATOEBA_URL=self.serve(Stalling) + "/short")
        self.assertIn("fra-eng_links.tsv.bz2: truncated after 20 of 1000 bytes", said)

    def test_interrupted(self):
        address = self.serve(Stalling)
        for number in (signal.SIGINT, signal.SIGTERM):
            self.server.asked.clear()
            script = subprocess.Popen(self.command("tatoeba"), stderr=subprocess.PIPE,
                                      env=self.environment({"CALQUE_TATOEBA_URL": address}))
            self.assertTrue(self.server.asked.wait(10))
            time.sleep(0.2)
            script.send_signal(number)
            said = script.communicate(timeout=10)[1].decode("utf-8")
            self.assertEqual(script.returncode, 130, said)
            self.assertNotIn("Traceback", said)
        self.assert_nothing_written()

    def test_does_not_overwrite_unless_told(self):
        self.publish_numbered(30)
        address = self.serve()
        for name in ("train", "valid", "test"):
            self.put("data/tatoeba/%s.tsv" % name, "Mien.\tMine.\n")
        said = self.run_script("tatoeba", CALQUE_TATOEBA_URL="http://127.0.0.1:1")
        self.assertIn("already exist: nothing to do", said)
        self.assertEqual(self.splits("tatoeba")["test"], [("Mien.", "Mine.")])
        self.run_script("tatoeba", "--force", CALQUE_TATOEBA_URL=address)
        self.assertEqual(len(self.splits("tatoeba")["train"]), 24)

    def test_from_folder(self):
        text = "\ufeff Bonjour \t Hello \r\n\n\tNothing\nÀ %s.\tTo.\n"
        for place in ("got/tatoeba", "flat"):
            for name in ("train", "valid", "test"):
                self.put("%s/%s.tsv" % (place, name), text % name)
            said = self.run_script("tatoeba", "--force", "--from", self.folder / place.split("/")[0])
            self.assertIn("skipped 1 pairs with an empty side", said)
            self.assertEqual(self.splits("tatoeba")["valid"], [("Bonjour", "Hello"), ("À valid.", "To.")])

    def test_from_folder_with_a_wrong_line(self):
        for name in ("train", "valid", "test"):
            self.put("got/%s.tsv" % name, "Un.\tOne.\nDeux.\tTwo.\tPair.\n")
        self.assertIn("train.tsv:2: expected french<TAB>english, found 2 tabs",
                      self.run_script("tatoeba", "--from", self.folder / "got", code=1))
        self.put("got/train.tsv", b"Un.\tOne.\n\xff\xfe\tTwo.\n")
        self.assertIn("train.tsv:2: not UTF-8",
                      self.run_script("tatoeba", "--from", self.folder / "got", code=1))
        self.assert_nothing_written()


class Multi30k(Case):
    stems = {"train": "train", "val": "valid", "test_2016_flickr": "test"}

    def publish(self, place, packed=True):
        expected = {}
        for number, (stem, name) in enumerate(self.stems.items()):
            expected[name] = numbered(5, 10 * number)
            for index, language in enumerate(("fr", "en")):
                text = side(expected[name], index).encode("utf-8")
                self.put("%s/%s.%s%s" % (place, stem, language, ".gz" if packed else ""),
                         gzip.compress(text) if packed else text)
        return expected

    def test_over_http(self):
        expected = self.publish("www")
        self.run_script("multi30k", CALQUE_MULTI30K_URL=self.serve() + "/")
        self.assertEqual(self.splits("multi30k"), expected)

    def test_different_numbers_of_lines(self):
        self.publish("www")
        self.put("www/val.en.gz", gzip.compress(b"Alone.\n"))
        said = self.run_script("multi30k", code=1, CALQUE_MULTI30K_URL=self.serve())
        self.assertIn("/val.{fr,en}.gz: French and English have different numbers of lines", said)
        self.assert_nothing_written()

    def test_truncated_archive(self):
        path = self.folder / "www/train.en.gz"
        self.publish("www")
        path.write_bytes(path.read_bytes()[:-12])
        said = self.run_script("multi30k", code=1, CALQUE_MULTI30K_URL=self.serve())
        self.assertIn("/train.en.gz: damaged or truncated", said)

    def test_from_folder(self):
        for place, packed in (("one/multi30k", True), ("two", False)):
            expected = self.publish(place, packed)
            self.run_script("multi30k", "--force", "--from", self.folder / place.split("/")[0])
            self.assertEqual(self.splits("multi30k"), expected)

    def test_from_folder_without_the_files(self):
        self.publish("got")
        self.folder.joinpath("got/val.fr.gz").unlink()
        said = self.run_script("multi30k", "--from", self.folder / "got", code=2)
        self.assertIn("got/multi30k/{train,val,test_2016_flickr}.{fr,en}[.gz]", said)


FRENCH = """Package: grenier
Description-md5: aa11
Description-fr: rangement pour vieilles boîtes
 Ce programme range des boîtes. Il compte aussi, p. ex. Les boîtes
 sous-
 marines\u22c5!
 .
 Un paragraphe. Deux phrases ici.
 .
 Il sait :
  – ouvrir une boîte,
    même fermée ;
  – la fermer ;
  – foobar ;
 .
 Fin du texte.

Package: cave
Description-md5: bb22
Description-fr: pareil / same
 Une ligne.

Package: orphelin
Description-md5: cc33
Description-fr: sans anglais
"""

ENGLISH = """Package: grenier
Description-md5: aa11
Description-en: shelf for old boxes
 This program shelves boxes. It also counts, e.g. Boxes under the
 sea!
 .
 One paragraph with only one sentence here.
 .
 It can
  * open a box,
    even a closed one
  * close it
  * foobar
 .
 End of text.

Package: cave
Description-md5: bb23
Description-en: another version
 A line.

Package: cave
Description-md5: bb22
Description-en: pareil / same
 A line.
 .
 More.
"""


class Debian(Case):
    def pairs(self):
        return list(get_data.debian_pairs(get_data.parse_translation(FRENCH.splitlines(True), "fr"),
                                          get_data.parse_translation(ENGLISH.split("\n"), "en")))

    def test_parses_and_aligns(self):
        self.assertEqual(self.pairs(), [
            ("pareil / same", "pareil / same"),
            ("rangement pour vieilles boîtes", "shelf for old boxes"),
            ("Ce programme range des boîtes.", "This program shelves boxes."),
            ("Il compte aussi, p. ex. Les boîtes sous-marines !",
             "It also counts, e.g. Boxes under the sea!"),
            ("Il sait :", "It can"),
            ("ouvrir une boîte, même fermée", "open a box, even a closed one"),
            ("la fermer", "close it"),
            ("foobar", "foobar"),
            ("Fin du texte.", "End of text."),
        ])

    def test_what_is_left_out(self):
        good = numbered(30)
        bad = [("foobar", "foobar"), ("court", "much longer than that"), ("é" * 601, "e" * 601),
               ("12 34", "12 35"), ("<trans>", "the text"),
               (good[0][0], "Another English."), ("Un autre français.", good[1][1])]
        splits = get_data.debian_splits(good + bad)
        self.assertEqual(sorted(sum(splits.values(), [])), sorted(good))
        self.assertEqual([len(splits[name]) for name in ("train", "valid", "test")], [24, 3, 3])

    def test_sizes_and_stability_of_the_split(self):
        pairs = numbered(12000)
        splits = get_data.debian_splits(pairs)
        self.assertEqual([len(splits[name]) for name in ("train", "valid", "test")], [10000, 1000, 1000])
        # Not assertEqual, which would take minutes to describe a difference of this size.
        self.assertTrue(splits == get_data.debian_splits(reversed(pairs)))
        grown = get_data.debian_splits(numbered(12100))
        self.assertGreater(len(set(grown["test"]) & set(splits["test"])), 950)

    def test_from_folder(self):
        for place in ("got/debian-descriptions", "flat"):
            for index, language in enumerate(("fr", "en")):
                self.put("%s/ddtp.%s" % (place, language), side(numbered(50), index))
            self.run_script("debian", "--force", "--from", self.folder / place.split("/")[0])
            self.assertEqual(sorted(sum(self.splits("debian").values(), [])), sorted(numbered(50)))

    def fake_apt(self, update):
        """Puts programs in the place of apt's, whose lists are FRENCH and ENGLISH and some more entries."""
        for language, text in (("fr", FRENCH), ("en", ENGLISH)):
            entry = "\nPackage: p%d\nDescription-md5: %d\nDescription-" + language + ": %s\n"
            more = [entry % (n, n, pair[language == "en"]) for n, pair in enumerate(numbered(40))]
            self.put("lists/Translation-" + language, text + "".join(more))
        lists = self.folder / "lists"
        self.put("bin/apt-config", "#!/bin/sh\necho 'Acquire::IndexTargets::deb::Packages::MetaKey \"x\";'\n")
        self.put("bin/apt-get", "#!/bin/sh\nif [ $1 = update ]; then\n%s\nelse\n"
                 "for l in fr en; do [ -e %s/Translation-$l ] && echo $l %s/Translation-$l; done; true\nfi\n"
                 % (update, lists, lists))
        self.put("bin/helper", "#!/bin/sh\n[ $1 = cat-file ] && cat $2\n")
        for path in (self.folder / "bin").iterdir():
            path.chmod(0o755)
        real = get_data.run

        def run(command):
            helper = "apt-helper" in command[0]
            return real([str(self.folder / "bin/helper")] + command[1:] if helper else command)
        path = "%s/bin:%s" % (self.folder, os.environ["PATH"])
        for patch in (mock.patch.dict(os.environ, PATH=path), mock.patch.object(get_data, "run", run)):
            patch.start()
            self.addCleanup(patch.stop)

    def test_through_apt(self):
        self.fake_apt('cp $4 %s/used; echo "W: one source failed"' % self.folder)
        with mock.patch.object(get_data, "say"):
            splits = get_data.debian()
        found = sum(splits.values(), [])
        self.assertIn(("rangement pour vieilles boîtes", "shelf for old boxes"), found)
        self.assertEqual(len(found), 47)
        settings = (self.folder / "used").read_text()
        self.assertIn('Acquire::IndexTargets::deb::Packages::DefaultEnabled "false";', settings)
        private = re.search('Dir::State "(.*)/state/";', settings).group(1)
        self.assertFalse(os.path.exists(private))

    def test_apt_without_network(self):
        self.fake_apt('echo "W: Failed to fetch the index: no network"')
        (self.folder / "lists/Translation-fr").unlink()
        with mock.patch.object(get_data, "say"), self.assertRaises(get_data.Failure) as raised:
            get_data.debian()
        self.assertIn("no Translation-fr: Failed to fetch the index: no network", str(raised.exception))
        self.assertIn("--from DIR", str(raised.exception))

    def test_no_apt(self):
        (self.folder / "empty").mkdir()
        said = self.run_script("debian", code=1, PATH=str(self.folder / "empty"))
        self.assertIn("needs a Debian or Ubuntu system, or --from DIR", said)


class OwnFolder(Case):
    def test_columns(self):
        for number, name in enumerate(("train", "valid", "test")):
            self.put("mine/%s.tsv" % name, tsv(numbered(3, number)))
        self.run_script(self.folder / "mine")
        self.assertEqual(self.splits("mine")["test"], numbered(3, 2))

    def test_two_files_a_split(self):
        for valid in ("valid", "val", "dev"):
            for number, stem in enumerate(("train", valid, "test_b", "test_a")):
                for index, language in enumerate(("fr", "en")):
                    self.put("my-%s/%s.%s" % (valid, stem, language), side(numbered(3, number), index))
            self.run_script(self.folder / ("my-" + valid))
            found = self.splits("my-" + valid)
            self.assertEqual([found["train"], found["valid"], found["test"]],
                             [numbered(3), numbered(3, 1), numbered(3, 3)])

    def test_without_the_files(self):
        self.put("mine/train.tsv", tsv(numbered(3)))
        said = self.run_script(self.folder / "mine", code=2)
        self.assertIn("contains neither {train,valid,test}.tsv nor {train,valid|val|dev,test*}.{fr,en}", said)
        self.assert_nothing_written()


class Writing(Case):
    splits_of_three = {"train": numbered(3), "valid": numbered(1, 3), "test": numbered(1, 4)}

    def test_leaves_nothing_when_the_disk_is_full(self):
        full = OSError(errno.ENOSPC, "No space left on device")
        with mock.patch.object(get_data.os, "fsync", side_effect=[None, full]):
            with self.assertRaises(get_data.Failure) as raised:
                get_data.write(self.into / "x", self.splits_of_three)
        self.assertIn("No space left on device; free some space or", str(raised.exception))
        self.assertFalse((self.into / "x").exists())

    def test_leaves_nothing_when_interrupted_and_keeps_the_old(self):
        self.put("data/x/train.tsv", "Mien.\tMine.\n")
        with mock.patch.object(get_data.os, "fsync", side_effect=[None, KeyboardInterrupt]):
            with self.assertRaises(KeyboardInterrupt):
                get_data.write(self.into / "x", self.splits_of_three)
        self.assertEqual([path.name for path in (self.into / "x").iterdir()], ["train.tsv"])
        self.assertEqual((self.into / "x/train.tsv").read_text(), "Mien.\tMine.\n")

    def test_refuses_a_place_it_cannot_write_before_fetching(self):
        self.put("data", "a file")
        said = self.run_script("tatoeba", code=1, CALQUE_TATOEBA_URL="http://127.0.0.1:1")
        self.assertIn("cannot write here; choose another folder with --into DIR", said)


class Arguments(Case):
    def test_help(self):
        done = subprocess.run([sys.executable, str(SCRIPT), "--help"], stdout=subprocess.PIPE, check=True)
        self.assertIn(b"Usage: tools/get-data", done.stdout)
        self.assertIn(b"Example: tools/get-data tatoeba", done.stdout)

    def test_refused(self):
        for arguments, message in (
                ((), "no corpus named"),
                (("europarl",), "europarl: not tatoeba, multi30k, debian or a folder"),
                (("--no-such-option",), "--no-such-option: no such option"),
                (("tatoeba", "multi30k"), "multi30k: only one name is allowed"),
                (("tatoeba", "--from"), "expected one argument"),
                (("tatoeba", "--from", self.folder / "nowhere"), "nowhere: no such folder"),
                (("tatoeba", "--from", self.folder), "tatoeba/{train,valid,test}.tsv"),
                (("debian", "--from", self.folder), "debian-descriptions/ddtp.{fr,en}"),
                ((self.folder, "--from", self.folder), "--from works with")):
            with self.subTest(arguments):
                self.assertIn(message, self.run_script(*arguments, code=2))
        self.assert_nothing_written()


class ProgressLine(Case):
    def show(self, live):
        with mock.patch.object(get_data.sys, "stderr") as stderr, \
                mock.patch.object(get_data.time, "monotonic") as now:
            stderr.isatty.return_value, now.return_value = live, 0
            with get_data.Progress("file", 4000000) as progress:
                now.return_value = 1
                progress.add(500000)
                now.return_value = 3
                progress.add(500000)
        return "".join(call.args[0] for call in stderr.write.call_args_list)

    def test_bytes_percent_and_time_left_after_two_seconds(self):
        self.assertEqual(self.show(False), "get-data: file: 1.0 MB of 4.0 MB, 25 %, 9 s left\n")
        self.assertEqual(self.show(True), "\r\033[Kget-data: file: 1.0 MB of 4.0 MB, 25 %, 9 s left\r\033[K")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""The clients that people have, unmodified, against `calque serve`: libretranslatepy, deepl, openai; npm's translate, deepl-node
and openai (tests/serve/clients); and schemathesis, which makes requests from /openapi.json. Skipped where tools/setup --tests has
not installed them."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".deps" / "clients"
NPM_FOLDER = ROOT / "tests" / "serve" / "clients"
if not (FOLDER / "complete").exists():
    print("clients_test: skipped: the clients are not installed; tools/setup --tests does that")
    sys.exit(77)
if not sys.executable.startswith(str(FOLDER)):  # the clients are in a virtual environment
    os.execv(FOLDER / "bin" / "python", [str(FOLDER / "bin" / "python"), *sys.argv])

import deepl  # noqa: E402  (in the environment that was entered above)
import libretranslatepy  # noqa: E402
import openai  # noqa: E402
from server import Server  # noqa: E402

SENTENCE = "Le chat dort sur la chaise."
TOKEN = "long-enough-token"


class ClientsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.url = f"http://127.0.0.1:{cls.server.port}"
        cls.expected = cls.server.call("POST", "/v1/translate", {"text": SENTENCE})[1]["translations"][0]["text"]
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(TOKEN)
            file.flush()
            cls.guarded = Server("--token", file.name)
        cls.guarded_url = f"http://127.0.0.1:{cls.guarded.port}"

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.guarded.stop()

    def test_libretranslate(self):
        client = libretranslatepy.LibreTranslateAPI(self.url + "/")
        self.assertEqual(client.translate(SENTENCE, "fr", "en"), self.expected)
        self.assertEqual(client.detect("Où est la gare ?")[0]["language"], "fr")
        self.assertEqual({one["code"] for one in client.languages()}, {"fr", "en"})

    def test_deepl(self):
        client = deepl.Translator("any-key", server_url=self.url)
        self.assertEqual(client.translate_text(SENTENCE, target_lang="EN-GB").text, self.expected)
        both = client.translate_text([SENTENCE, SENTENCE], source_lang="FR", target_lang="EN-US", context="Un salon.",
                                     split_sentences="nonewlines")
        self.assertEqual([one.text for one in both], [self.expected] * 2)
        marked = client.translate_text(f"<p>{SENTENCE}</p>", target_lang="EN-US", tag_handling="html").text
        self.assertEqual(marked, f"<p>{self.expected}</p>")
        glossary = client.create_glossary("animals", "FR", "EN", {"chat": "feline"})
        self.assertEqual(client.get_glossary_entries(glossary), {"chat": "feline"})
        self.assertEqual([one.name for one in client.list_glossaries()], ["animals"])
        forced = client.translate_text(SENTENCE, source_lang="FR", target_lang="EN-US", glossary=glossary).text
        self.assertIn("feline", forced.lower())
        client.delete_glossary(glossary)
        self.assertEqual(client.list_glossaries(), [])
        self.assertEqual([one.code for one in client.get_source_languages()], ["FR"])
        self.assertEqual([one.code for one in client.get_target_languages()], ["EN-GB", "EN-US"])
        self.assertEqual([(one.source_lang, one.target_lang) for one in client.get_glossary_languages()], [("fr", "en")])
        self.assertFalse(client.get_usage().any_limit_reached)
        with self.assertRaises(deepl.DeepLException):
            client.translate_text(SENTENCE, target_lang="DE")

    def test_openai(self):
        client = openai.OpenAI(base_url=self.url + "/v1", api_key="any-key")
        messages = [{"role": "system", "content": "Translate into English."}, {"role": "user", "content": SENTENCE}]
        answer = client.chat.completions.create(model="base", messages=messages)
        self.assertEqual(answer.choices[0].message.content, self.expected)
        self.assertGreater(answer.usage.prompt_tokens, 3)
        messages[1]["content"] = SENTENCE + "\n" + SENTENCE
        parts = client.chat.completions.create(model="base", messages=messages, stream=True)
        text = "".join(part.choices[0].delta.content or "" for part in parts)
        self.assertEqual(text, self.expected + "\n" + self.expected)
        with self.assertRaises(openai.BadRequestError):
            client.chat.completions.create(model="base", messages=[])

    @unittest.skipUnless(shutil.which("node") and (NPM_FOLDER / "node_modules" / "deepl-node").exists(),
                         "npm's clients are not installed; tools/setup --tests does that")
    def test_npm_clients(self):
        done = subprocess.run(["node", "--test", "clients_test.mjs"], cwd=NPM_FOLDER, capture_output=True, text=True, timeout=240, env={
            **os.environ, "CALQUE_URL": self.url, "CALQUE_GUARDED_URL": self.guarded_url, "CALQUE_TOKEN": TOKEN})
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-2000:])

    def test_requests_made_from_the_description(self):
        done = subprocess.run([FOLDER / "bin" / "schemathesis", "run", self.url + "/openapi.json", "--max-examples", "15",
                               "--seed", "1", "--checks", "not_a_server_error,response_schema_conformance,status_code_conformance,"
                               "content_type_conformance", "--phases",
                               "examples,coverage,fuzzing", "--generation-deterministic"], capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()

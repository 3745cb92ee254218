#!/usr/bin/env python3
"""calque serve, as its clients meet it: the same translations as `calque translate`, streams, the calls of other servers'
clients, mistakes, limits, and the end. All on loopback."""
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.parse

from server import CALQUE, MODEL, Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
SENTENCES = ["Le chat dort sur la chaise.", "Où est la gare ?", "", "Il a mangé une pomme hier."] * 3


FORM = {"Content-Type": "multipart/form-data; boundary=----x"}


def form(**fields):
    """A multipart form of texts and files (name, content)."""
    text = ""
    for name, value in fields.items():
        file, content = value if isinstance(value, tuple) else (None, value)
        text += f'------x\r\nContent-Disposition: form-data; name="{name}"' + (f'; filename="{file}"' if file else "")
        text += f"\r\n\r\n{content}\r\n"
    return (text + "------x--\r\n").encode()


class ServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def call(self, *arguments):
        return self.server.call(*arguments)

    def translate(self, **body):
        status, answer = self.call("POST", "/v1/translate", body)
        self.assertEqual(status, 200, answer)
        return answer

    def queue_depth(self):
        return float(re.search(r"^calque_queue_depth (\S+)$", self.call("GET", "/metrics")[1], re.M).group(1))

    def wait_for_an_empty_queue(self):
        for _ in range(100):
            if (depth := self.queue_depth()) == 0:
                return
            time.sleep(0.1)
        self.fail(f"{depth} lines are still waiting")

    def test_translations_equal_those_of_the_command_line(self):
        lines = "\n".join(SENTENCES)
        expected = subprocess.run([CALQUE, "translate", MODEL, "--precision", "int8"], input=lines + "\n", text=True,
                                  capture_output=True, check=True).stdout.splitlines()
        self.assertEqual([one["text"] for one in self.translate(text=SENTENCES)["translations"]], expected)
        self.assertEqual(self.translate(text=lines)["translations"][0]["text"], "\n".join(expected))

    def test_a_translation_does_not_depend_on_what_is_beside_it(self):
        alone = {beam: self.translate(text=SENTENCES[0], beam=beam, scores=True)["translations"] for beam in (1, 2, 5)}
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            together = list(pool.map(
                lambda i: (i % 3, self.translate(text=SENTENCES[0], beam=(1, 2, 5)[i % 3], scores=True)["translations"]), range(60)))
        for kind, translations in together:
            self.assertEqual(translations, alone[(1, 2, 5)[kind]])

    def test_a_stream_ends_with_the_same_translation(self):
        _, text = self.call("POST", "/v1/translate", {"text": SENTENCES[0], "stream": True})
        events = [(re.search("^event: (.*)$", one, re.M).group(1), json.loads(re.search("^data: (.*)$", one, re.M).group(1)))
                  for one in text.strip().split("\n\n")]
        self.assertEqual([name for name, _ in events][-2:], ["translation", "done"])
        self.assertIn("partial", [name for name, _ in events])
        self.assertEqual(events[-2][1]["text"], self.translate(text=SENTENCES[0])["translations"][0]["text"])

    def test_words_attention_and_alternatives_fit_together(self):
        segment = self.translate(text=SENTENCES[0], words=True, attention=True)["translations"][0]["segments"][0]
        self.assertEqual(" ".join(word["text"] for word in segment["words"]), segment["text"])
        self.assertEqual(len(segment["attention"]), len(segment["words"]) + 1)
        for row in segment["attention"]:
            self.assertEqual(len(row), len(segment["source_words"]))
            self.assertAlmostEqual(sum(row), 1, places=5)
        words = segment["text"].split()
        status, answer = self.call("POST", "/v1/alternatives", {"source": SENTENCES[0], "prefix": words[0], "count": 5})
        self.assertEqual(status, 200, answer)
        for one in answer["alternatives"]:
            self.assertTrue(one["translation"].startswith(words[0] + " " + one["word"]), one)
        status, answer = self.call("POST", "/v1/attention", {"source": SENTENCES[0], "target": segment["text"], "layer": 0, "head": 1})
        self.assertEqual((status, len(answer["attention"])), (200, len(words) + 1))

    def test_scores_of_given_texts(self):
        status, answer = self.call("POST", "/v1/evaluate", {"hypothesis": ["The cat is here now."], "reference": ["The cat is here now."]})
        self.assertEqual((status, round(answer["bleu"]["score"])), (200, 100))

    def test_evaluations_keep_lines_and_limits(self):
        text = "\n".join(SENTENCES[:2])
        status, answer = self.call("POST", "/v1/evaluate", {"source": text, "reference": "a\nb"})
        self.assertEqual((status, answer["translations"]), (200, [self.translate(text=text)["translations"][0]["text"]]))
        for body, expected, part in [({"hypothesis": ["a", "b"], "reference": "a"}, 400, "2 hypotheses and 1 references"),
                                     ({"source": ["a", "b"], "reference": "a"}, 400, "2 sources and 1 references"),
                                     ({"source": "a"}, 400, "reference is missing"), ({"hypothesis": "a" * 100_001, "reference": "a"}, 413, "a line of"),
                                     ({"hypothesis": "a", "reference": "a" * 100_001}, 413, "a line of"), ({"source": "a" * 100_001, "reference": "a"}, 413, "a line of")]:
            status, answer = self.call("POST", "/v1/evaluate", body)
            self.assertEqual(status, expected, answer)
            self.assertIn(part, answer["error"]["message"])

    def test_evaluations_do_not_hold_up_what_people_wait_for(self):
        body = json.dumps({"source": ["Le chat dort sur la chaise, et la gare est loin."] * 5000, "reference": ["a"] * 5000}).encode()
        connections = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(3)]
        for one in connections:
            one.sendall(b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(0.3)
        self.assertEqual(self.call("POST", "/v1/attention", {"source": SENTENCES[0], "target": "The cat."})[0], 200)
        self.assertGreater(self.queue_depth(), 0)
        for one in connections:
            one.close()
        self.wait_for_an_empty_queue()

    def test_each_model_has_a_speed_of_its_own(self):
        self.translate(text=SENTENCES[0])
        self.assertGreater(self.call("GET", "/v1/models")[1]["models"][0]["sentences_per_second"], 0)

    def test_other_servers_clients(self):
        text = self.translate(text=SENTENCES[0])["translations"][0]["text"]
        status, answer = self.call("POST", "/translate", {"q": SENTENCES[0], "source": "fr", "target": "en", "format": "text"})
        self.assertEqual((status, answer), (200, {"translatedText": text}))
        status, answer = self.call("POST", "/translate", {"q": [SENTENCES[0]], "source": "auto", "target": "en", "alternatives": 2})
        self.assertEqual((status, answer["translatedText"], len(answer["alternatives"][0])), (200, [text], 2))
        status, answer = self.call("POST", "/translate", "q=Bonjour&source=fr&target=en", {"Content-Type": "application/x-www-form-urlencoded"})
        self.assertEqual(status, 200)
        self.assertEqual(self.call("POST", "/detect", {"q": "Où est la gare ?"})[1][0]["language"], "fr")
        self.assertEqual(self.call("POST", "/detect", {"q": "Where is the station?"})[1][0]["language"], "en")
        self.assertEqual(self.call("GET", "/languages")[1][0]["code"], "fr")
        status, answer = self.call("POST", "/v2/translate", {"text": [SENTENCES[0]], "target_lang": "EN-GB"})
        self.assertEqual((status, answer["translations"][0]["text"]), (200, text))
        both = " ".join(SENTENCES[:2])
        status, answer = self.call("POST", "/v2/translate", {"text": [both], "target_lang": "EN"})
        self.assertEqual((status, answer["translations"][0]["text"]), (200, " ".join(self.translate(text=one)["translations"][0]["text"] for one in SENTENCES[:2])))
        status, answer = self.call("POST", "/v2/translate", {"text": ["Oui."]})
        self.assertEqual((status, answer["message"]), (400, "the target language is missing; it is English (en)"))
        status, answer = self.call("POST", "/v1/chat/completions", {"model": "any", "messages": [{"role": "user", "content": SENTENCES[0]}]})
        self.assertEqual((status, answer["choices"][0]["message"]["content"]), (200, text))
        for content in ("Translate the following French text to English:\n\n" + SENTENCES[0], "Traduis en anglais : " + SENTENCES[0],
                        [{"type": "text", "text": SENTENCES[0]}]):
            status, answer = self.call("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": content}]})
            self.assertEqual((status, answer["choices"][0]["message"]["content"]), (200, text), content)
        for content in (5, [], [{"type": "image_url"}]):
            self.assertEqual(self.call("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": content}]})[0], 400)

    def test_a_file_is_translated_and_fetched_from_the_address_in_the_answer(self):
        text = self.translate(text=SENTENCES[0])["translations"][0]["text"]
        for headers, scheme in (({}, "http"), ({"X-Forwarded-Proto": "https"}, "https"), ({"X-Forwarded-Proto": "javascript"}, "http")):
            status, answer = self.call("POST", "/translate_file", form(file=("où ?#%.txt", SENTENCES[0])), {**FORM, **headers})
            self.assertEqual(status, 200, answer)
            url = urllib.parse.urlsplit(answer["translatedFileUrl"])
            self.assertEqual((url.scheme, url.netloc, url.query, url.fragment), (scheme, f"127.0.0.1:{self.server.port}", "", ""))
            self.assertEqual(urllib.parse.unquote(url.path.split("/")[-1]), "où ?#%.txt")
            self.assertEqual(self.call("GET", url.path), (200, text))
        status, answer = self.call("POST", "/translate_file", form(file=("a.txt", SENTENCES[0]), model="other"), FORM)
        self.assertEqual(status, 404, answer)

    def test_terms_of_a_glossary_are_in_the_translation(self):
        text = self.translate(text=[SENTENCES[0], SENTENCES[1]], glossary={"chat": "feline", "gare": "railway station"})["translations"]
        self.assertIn("feline", text[0]["text"].lower())
        self.assertIn("railway station", text[1]["text"].lower())

    def test_tags_keep_their_places(self):
        plain = self.translate(text=SENTENCES[0])["translations"][0]["text"]
        html = f"<div class='a'><p>{SENTENCES[0]}</p><br><script>x < 1</script></div>"
        text = self.translate(text=html, format="html")["translations"][0]["text"]
        self.assertEqual(text, html.replace(SENTENCES[0], plain))
        text = self.translate(text="Le <b>chat</b> dort.", format="html")["translations"][0]["text"]
        self.assertEqual((text.count("<b>"), text.count("</b>")), (1, 1))
        status, answer = self.call("POST", "/translate", {"q": html, "source": "fr", "target": "en", "format": "html"})
        self.assertEqual((status, answer["translatedText"]), (200, html.replace(SENTENCES[0], plain)))
        self.assertEqual(self.translate(text="<hr>", format="html")["translations"][0]["text"], "<hr>")
        for one in self.translate(text="Le <b>chat</b> dort.", format="html", nbest=3)["translations"][0]["nbest"]:
            self.assertEqual((one["text"].count("<b>"), one["text"].count("</b>")), (1, 1), one)

    def test_mistakes_are_named(self):
        for body, status, part in [("{", 400, "JSON"), ("[" * 10_000, 400, "nested"), ("[]", 400, "object"), ({}, 400, "text is missing"),
                                   ({"text": 5}, 400, "text"), ({"text": "a", "bean": 4}, 400, "did you mean beam?"),
                                   ({"text": "a", "beam": "4"}, 400, "beam"), ({"text": "a", "beam": 0}, 400, "beam"),
                                   ({"text": "a", "beam": 1e300}, 400, "beam"), ({"text": "a", "model": "x"}, 404, "model x"),
                                   ({"text": "a", "precision": "int4"}, 400, "precision"),
                                   ({"text": "a", "precision": "float32"}, 400, "--precision int8,float32"), ({"text": "a", "format": "pdf"}, 400, "format"),
                                   ({"text": "a", "glossary": {"b": 1}}, 400, "glossary"), ({"text": "a", "prefix": "word " * 900}, 400, "prefix"), (b'{"text": "\xff"}', 400, "JSON")]:
            found, answer = self.call("POST", "/v1/translate", body)
            self.assertEqual(found, status, (body, answer))
            self.assertIn(part, answer["error"]["message"])
        self.assertEqual(self.call("GET", "/nothing")[0], 404)
        self.assertEqual(self.call("GET", "/v1/translate")[0], 405)
        self.assertEqual(self.call("GET", "/v1/runs/..%2f..%2fetc")[0], 404)
        self.assertEqual(self.call("POST", "/v1/models", {"model": "x"})[0], 403)

    def test_rebinding_and_other_sites_are_refused(self):
        self.assertEqual(self.call("GET", "/v1/models", None, {"Host": "evil.example"})[0], 403)
        self.assertEqual(self.call("POST", "/v1/translate", {"text": "a"}, {"Origin": "http://evil.example"})[0], 403)
        self.assertEqual(self.call("GET", "/v1/models", None, {"Host": "localhost:1"})[0], 200)

    def test_limits(self):
        self.assertEqual(self.call("GET", "/v1/health", None, {"X": "a" * 20_000})[0], 431)
        connection = socket.create_connection(("127.0.0.1", self.server.port))
        connection.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
        self.assertIn(b" 413 ", connection.recv(1000))
        connection.close()
        silent = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(100)]
        self.assertEqual(self.call("GET", "/v1/health")[0], 200)
        for one in silent:
            one.close()

    def test_requests_in_one_packet_are_answered_in_order(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port))
        connection.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2 + b"GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = b""
        while data := connection.recv(65536):
            text += data
        self.assertEqual(re.findall(rb"HTTP/1\.1 (\d+)", text), [b"200", b"200", b"404"])

    def test_a_client_that_leaves_cancels_its_work(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port))
        body = json.dumps({"text": ["Le chat dort sur la chaise, et la gare est loin."] * 5000, "beam": 8}).encode()
        connection.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(0.3)
        connection.close()
        self.wait_for_an_empty_queue()

    def test_the_page_and_the_description_need_nothing_from_elsewhere(self):
        status, page = self.call("GET", "/")
        self.assertEqual(status, 200)
        self.assertNotIn("{{nonce}}", page)
        self.assertNotRegex(page, r"(src|href)=\"https?://")
        description = self.call("GET", "/openapi.json")[1]
        self.assertIn("beam", description["paths"]["/v1/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"])


class OtherServersTest(unittest.TestCase):
    def test_a_token_is_asked_for_in_each_form(self):
        with tempfile.TemporaryDirectory() as folder:
            token = pathlib.Path(folder, "token")
            token.write_text("long-enough-token\n")
            server = Server("--token", str(token))
            self.assertEqual(server.call("GET", "/v1/models")[0], 401)
            for header in ("Bearer long-enough-token", "bearer long-enough-token", "DeepL-Auth-Key long-enough-token"):
                self.assertEqual(server.call("GET", "/v1/models", None, {"Authorization": header})[0], 200)
            self.assertEqual(server.call("GET", "/v1/models", None, {"Authorization": "Bearer wrong"})[0], 401)
            self.assertEqual(server.call("POST", "/v1/models", {"model": MODEL}, {"Authorization": "Bearer long-enough-token"})[0], 409)
            self.assertEqual(server.call("POST", "/translate", {"q": "Bonjour", "source": "fr", "target": "en"})[0], 401)
            self.assertEqual(server.call("POST", "/translate", {"q": "Bonjour", "source": "fr", "target": "en", "api_key": "long-enough-token"})[0], 200)
            self.assertEqual(server.stop(), 0)

    def test_only_the_precisions_of_the_command_line_are_loaded(self):
        server = Server("--precision", "int8,bfloat16", "--allow-host", "translate.example.com")
        self.assertEqual(server.call("GET", "/v1/models")[1]["precisions"], ["int8", "bfloat16"])
        for precision, expected in (("int8", 200), ("bfloat16", 200), ("float32", 400)):
            while (answer := server.call("POST", "/v1/translate", {"text": "Oui.", "precision": precision}))[0] == 503:
                time.sleep(0.1)
            self.assertEqual(answer[0], expected, answer)
        self.assertEqual(server.stop(), 0)

    def test_a_full_queue_answers_429_and_a_stop_answers_what_was_accepted(self):
        server = Server("--queue", "600")
        long = {"text": SENTENCES[:2] * 250, "beam": 4}
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            first = pool.submit(server.call, "POST", "/v1/translate", long)
            time.sleep(0.15)
            second = server.call("POST", "/v1/translate", long)
            server.process.send_signal(signal.SIGTERM)
            self.assertIn(second[0], (200, 429))
            self.assertEqual(first.result()[0], 200)
        server.process.communicate(timeout=60)
        self.assertEqual(server.process.returncode, 0)

    @unittest.skipUnless(shutil.which("nginx") or pathlib.Path("/usr/sbin/nginx").exists(), "nginx is not installed")
    def test_the_nginx_example_of_the_docs_serves_tls(self):
        example = re.search("```nginx\n(.*?)```", (ROOT / "docs/serve.md").read_text(), re.S).group(1)
        with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
            token, key, certificate = (pathlib.Path(folder, name) for name in ("token", "key", "certificate"))
            token.write_text("long-enough-token\n")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=translate.example.com", "-keyout",
                            key, "-out", certificate], check=True, capture_output=True)
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            free.close()
            server = Server("--token", str(token), "--allow-host", "translate.example.com")
            example = (example.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl").replace(":8080", f":{server.port}")
                       .replace("/etc/ssl/translate.example.com.pem", str(certificate))
                       .replace("/etc/ssl/translate.example.com.key", str(key)))
            config = pathlib.Path(folder, "nginx.conf")
            temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            config.write_text(f"pid {folder}/pid; error_log {folder}/errors; daemon off; worker_processes 1; events {{}}\n"
                              f"http {{ access_log off; {temporary}\n{example} }}\n")
            proxy = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-c", config], stderr=subprocess.DEVNULL)
            try:
                for _ in range(100):
                    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                        break
                    time.sleep(0.05)
                connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=ssl._create_unverified_context())
                connection.request("POST", "/v1/translate", json.dumps({"text": SENTENCES[0], "stream": True}),
                                   {"Host": "translate.example.com", "Authorization": "Bearer long-enough-token"})
                answer = connection.getresponse()
                self.assertEqual(answer.status, 200)
                self.assertIn("event: done", answer.read().decode())
                connection.request("GET", "/v1/models", headers={"Host": "translate.example.com"})
                self.assertEqual(connection.getresponse().status, 401)
            finally:
                proxy.terminate()
                proxy.wait(30)
                server.stop()

    def test_addresses_that_others_reach_need_a_token(self):
        done = subprocess.run([CALQUE, "serve", MODEL, "--host", "0.0.0.0", "--port", "0"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--token", done.stderr)


if __name__ == "__main__":
    unittest.main()

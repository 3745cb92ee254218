"""Clients of `calque serve` that misbehave. After each, the server still answers a well-behaved one at once, with the right
translation. Everything on loopback, bounded in count and time."""

import collections
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from lab import Wrong

SENTENCE = "Le chat dort sur la chaise."
HEAD = "POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n"


class Served:
    def __init__(self, trial, *options, model="../base", token=None):
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.process = subprocess.Popen([trial.lab.calque, "serve", model, "--port", "0", *options], cwd=trial.folder,
                                        env=trial.lab.environment, stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+): ", self.process.stderr.readline()).group(1))
        self.said = []
        threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True).start()  # or its pipe fills up
        for _ in range(600):
            if self.call("GET", "/v1/health")[0] == 200:
                break
            time.sleep(0.05)
        self.expected = self.translation()

    def call(self, method, path, body=None, seconds=30):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self.headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def translation(self):
        status, body = self.call("POST", "/v1/translate", {"text": SENTENCE})
        if status != 200:
            raise Wrong(f"a well-behaved request is answered with {status}: {body[:200]}")
        return json.loads(body)["translations"][0]["text"]

    def check(self):
        if self.process.poll() is not None:
            raise Wrong(f"the server ended: {self.process.returncode}: {''.join(self.said)[-300:]}")
        if self.translation() != self.expected:
            raise Wrong("another translation than before")

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def send(self, data):
        """The status line's number of what is answered, 0 where the connection is closed without an answer."""
        with self.connect() as one, contextlib.suppress(ConnectionError, BrokenPipeError):
            with contextlib.suppress(ConnectionError, BrokenPipeError):
                one.sendall(data)
            found = re.match(rb"HTTP/1\.1 (\d+)", one.recv(4096))
            return int(found.group(1)) if found else 0
        return 0

    def memory(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def peak(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"^VmHWM:\s+(\d+) kB", file.read(), re.M).group(1)) * 1024

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(90)


def post(body):
    return HEAD.format(len(body)).encode() + body


def silent(server, count):
    connections = [server.connect() for _ in range(count)]
    server.check()
    end = time.monotonic() + 30  # the server has 10 seconds of patience
    for one in connections:
        one.settimeout(max(0.1, end - time.monotonic()))
        with contextlib.suppress(ConnectionError):
            one.recv(100)  # ends when the server closes it; a time-out is an error
        one.close()
    return "cut off after 10 seconds; others were answered meanwhile"


def slow(server, count):
    connections = [server.connect() for _ in range(count)]
    body = post(b'{"text": "' + b"a" * 200 + b'"}')
    sent, gone = 0, set()
    end = time.monotonic() + 30
    while len(gone) < count and time.monotonic() < end:
        for i, one in enumerate(connections):
            if i in gone:
                continue
            try:
                one.sendall(body[sent:sent + 1])
                one.setblocking(False)
                if one.recv(1) == b"":
                    gone.add(i)
            except BlockingIOError:
                pass
            except OSError:
                gone.add(i)
            finally:
                with contextlib.suppress(OSError):
                    one.settimeout(30)
        sent += 1
        server.check()
        time.sleep(1)
    for one in connections:
        one.close()
    if len(gone) < count:
        raise Wrong(f"{count - len(gone)} of {count} slow senders were still connected after 30 seconds")
    return "cut off after 10 seconds; others were answered meanwhile"


def vanish(server, count):
    body = post(json.dumps({"text": [SENTENCE] * 200, "stream": True, "beam": 8}).encode())
    for i in range(count):
        with server.connect() as one:
            one.sendall(body)
            if i % 2:
                one.recv(100)
    end = time.monotonic() + 60
    while float(re.search(rb"^calque_queue_depth (\S+)$", server.call("GET", "/metrics")[1], re.M).group(1)) > 0:
        if time.monotonic() > end:
            raise Wrong("the work of clients that left is still done after a minute")
        time.sleep(0.1)
    return "their work was cancelled"


def answers(wanted):
    """A fault that consists of what is sent: it must be answered with one of these."""
    def check(data):
        def work(server, count):
            for _ in range(count):
                found = server.send(data)
                if found not in wanted:
                    raise Wrong(f"answered with {found}, not {wanted}: {data[:80]!r}")
            return "answered with " + " or ".join(map(str, filter(None, wanted)))
        return work
    return check


def large(server, count):
    for _ in range(count):
        with server.connect() as one:
            with contextlib.suppress(ConnectionError, BrokenPipeError):
                one.sendall(HEAD.format(100_000_000).encode() + b'{"text": "')
                for _ in range(1000):
                    one.sendall(b"a" * 100_000)
            with contextlib.suppress(ConnectionError):
                answer = one.recv(1000)
                if answer and b" 413 " not in answer:
                    raise Wrong(f"answered with {answer[:80]!r}")
    return "answered with 413, or cut"


def pipelined(server, count):
    for _ in range(count):
        with server.connect() as one:
            one.sendall(post(json.dumps({"text": SENTENCE}).encode()) * 30 + b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n"
                        b"Connection: close\r\n\r\n")
            text = b""
            while data := one.recv(1 << 16):
                text += data
        if len(re.findall(rb"HTTP/1\.1 200", text)) != 31:
            raise Wrong(f"{len(re.findall(rb'HTTP/1.1 200', text))} of 31 answers")
    return "all answered, in order"


def full_queue(trial, seconds):
    """Clients that ask for more than the queue holds: each is answered, or told to try again."""
    server = Served(trial, "--queue", "60")
    found, stop = {}, time.monotonic() + seconds

    def client():
        while time.monotonic() < stop:
            status, _ = server.call("POST", "/v1/translate", {"text": [SENTENCE] * 20})
            found[status] = found.get(status, 0) + 1

    clients = [threading.Thread(target=client) for _ in range(12)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    server.check()
    server.stop()
    if set(found) != {200, 429}:
        raise Wrong(f"answers: {found}")
    return f"200 ({found[200]} times) and 429 ({found[429]} times), nothing else"


def ended_under_load(trial, _):
    """SIGTERM under load: what was accepted is answered, later ones are refused, and the server ends with exit 0."""
    server = Served(trial)
    found, lock = [], threading.Lock()

    def client():
        for _ in range(400):
            try:
                status, body = server.call("POST", "/v1/translate", {"text": SENTENCE})
                whole = status != 200 or json.loads(body)["translations"][0]["text"] == server.expected
                with lock:
                    found.append(status if whole else "wrong")
            except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected):
                return  # nothing was accepted
            except http.client.HTTPException as error:
                with lock:
                    found.append(repr(error))
                return

    clients = [threading.Thread(target=client) for _ in range(16)]
    for one in clients:
        one.start()
    time.sleep(trial.lab.random("term", trial.folder).uniform(0.05, 0.6))
    code = server.stop()
    for one in clients:
        one.join()
    if code != 0 or not found or set(found) - {200, 503}:
        raise Wrong(f"exit {code}, answers {sorted(set(map(str, found)))}")
    return "every accepted request was answered in full; exit 0"


def unknown_callers(trial, count):
    """LibreTranslate's clients send the token in the body: what else is in it must not be kept for a caller without one."""
    token = "0123456789"
    (trial / "token").write_text(token)
    server = Served(trial, "--token", "token", token=token)
    before = server.peak()
    for body in [b"[" * 16_000_000, b'{"a":[' + b"[]," * 5_000_000 + b"[]]}"]:
        answers([400, 401])(post(body).replace(b"/v1/translate", b"/translate"))(server, count)
    grown = (server.peak() - before) / 2**20
    server.check()
    server.stop()
    if grown > 200:
        raise Wrong(f"the server's memory grew by {grown:.0f} MB")
    return "answered with 400 or 401; the server grew by less than 200 MB meanwhile"


def lost_model(trial, _):
    """The model's files disappear while it is served; a precision that was not loaded yet cannot be."""
    shutil.copytree(trial.lab.folder / "base", trial / "base")
    server = Served(trial, "--precision", "int8,float32", model="base")
    shutil.rmtree(trial / "base")
    server.check()
    for _ in range(200):
        status, body = server.call("POST", "/v1/translate", {"text": SENTENCE, "precision": "float32"})
        if b"loading" not in body:
            break
        time.sleep(0.05)
    if status != 503 or b"base" not in body:
        raise Wrong(f"another precision of a lost model: {status}: {body[:200]}")
    server.check()
    server.stop()
    return "it went on in the precision that was loaded; another was refused, naming the file"


def serve(lab):
    many, few = (100, 3) if lab.short else (1000, 200)
    deep = post(b"[" * 10_000)
    faults = [
        ("connects and says nothing", many, silent),
        ("sends a byte per second", many // 5, slow),
        ("vanishes in mid-answer", few, vanish),
        ("sends 100 MB", 2 if lab.short else 20, large),
        ("bad JSON", few, answers([400])(post(b'{"text": '))),
        ("bad UTF-8", few, answers([400])(post(b'{"text": "\xff\xfe"}'))),
        ("JSON nested 10,000 deep", few, answers([400])(deep)),
        ("the same to LibreTranslate's route", few, answers([400])(deep.replace(b"/v1/translate", b"/translate"))),
        ("an unknown field", few, answers([400])(post(b'{"text": "a", "bean": 4}'))),
        ("a wrong type", few, answers([400])(post(b'{"text": {"a": 1}}'))),
        ("headers of more than 16 kB", few, answers([431])(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 17_000 + b"\r\n\r\n")),
        ("what is not HTTP", few, answers([400, 0])(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20)),
        ("two lengths", few, answers([400, 0])(b"POST /v1/translate HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 9\r\n\r\nabcdefghi")),
        ("a chunk of 2^64 bytes", few, answers([400, 0])(b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\na")),
        ("30 requests in one packet", few, pipelined),
    ]

    def misbehave(trial, fault):
        name, count, work = fault
        server = Served(trial)
        try:
            if work not in (silent, slow):
                work(server, 2)  # buffers that are kept
            before = server.memory()
            happened = work(server, count)
            server.check()
            grown = (server.memory() - before) / 2**20
            if grown > 60:
                raise Wrong(f"{name}: memory grew by {grown:.0f} MB")
        finally:
            server.stop()
        return happened

    for fault in lab.few("serve", faults, 8):
        name, count, work = fault
        happened = lab.attempts("serve", name, [fault], misbehave)
        lab.row("serve", f"a client {name}" if work in (silent, slow, vanish, large) else name,
                collections.Counter(dict.fromkeys(happened, count)))
    seconds = 3 if lab.short else 60
    lab.row("serve", f"a full queue for {seconds} seconds, 12 clients", lab.attempts("serve", "queue", [seconds], full_queue))
    lab.row("serve", "`kill -TERM` under load, 16 clients", lab.attempts("serve", "term", [0] * (2 if lab.short else 30), ended_under_load))
    count = 1 if lab.short else 20
    lab.row("serve", f"16 MB of brackets without the token, {2 * count} times", lab.attempts("serve", "unknown", [count], unknown_callers))
    lab.row("serve", "the model's files disappear", lab.attempts("serve", "lost", [0], lost_model))

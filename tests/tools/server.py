"""A `calque serve` of its own for a test, on loopback and a free port."""
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import time

CALQUE = os.environ["CALQUE"]
MODEL = str(pathlib.Path(__file__).resolve().parents[2] / "checkpoints" / "base")


class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen([CALQUE, "serve", "--port", "0", *options, MODEL], stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)", line).group(1))
        for _ in range(300):
            if self.call("GET", "/v1/health")[0] == 200:
                return
            time.sleep(0.1)
        raise AssertionError("the server is not ready after 30 s")

    def call(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        is_json = answer.getheader("Content-Type", "").startswith("application/json") and text
        return answer.status, json.loads(text) if is_json else text

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        return self.process.returncode

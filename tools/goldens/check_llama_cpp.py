"""Compares a GGUF file with llama.cpp itself (the Python package xllamacpp):
tools/goldens/check_llama_cpp.py MODEL.gguf CHECKPOINT [FILE…]
The log-probabilities of the next token after a few prompts must agree to 0.02, and the token ids of every line of the files must be
identical."""

import json
import math
import pathlib
import random
import subprocess
import sys
import urllib.request

import xllamacpp

from check_tokenizers import lines_of, our_ids

ROOT = pathlib.Path(__file__).resolve().parents[2]


def ask(server, path, question):
    request = urllib.request.Request(f"{server.listening_address}/{path}", json.dumps(question).encode(),
                                     {"Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(request, timeout=120).read())


def start(model):
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.n_ctx = 512
    parameters.n_parallel = 1
    parameters.warmup = False
    parameters.cpuparams.n_threads = 2
    return xllamacpp.Server(parameters)


def largest_difference(server, checkpoint):
    config = json.loads((checkpoint / "config.json").read_text())
    rng, worst = random.Random(8), 0.0
    for _ in range(4):
        ids = [config["bos_token_id"]] + [rng.randrange(config["vocab_size"]) for _ in range(11)]
        said = ask(server, "completion", {"prompt": ids, "n_predict": 1, "n_probs": 50, "temperature": 0, "cache_prompt": False})
        found = said["completion_probabilities"][0]["top_logprobs"]
        out = subprocess.run([str(ROOT / "build/calque"), "inspect", str(checkpoint), "--logits", " ".join(map(str, ids))],
                             capture_output=True, text=True, check=True).stdout
        logits = json.loads(out)["logits"][-1]
        top = max(logits)
        total = top + math.log(sum(math.exp(x - top) for x in logits))
        worst = max([worst] + [abs(one["logprob"] - (logits[one["id"]] - total)) for one in found])
    return worst


def main():
    model, checkpoint, files = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    server = start(model)
    difference = largest_difference(server, checkpoint)
    print(f"log-probabilities differ by at most {difference:.2g}")
    wrong = []
    if files:
        lines = lines_of(files)
        found = our_ids(checkpoint, lines)
        for line, ids in zip(lines, found):
            theirs = ask(server, "tokenize", {"content": line, "add_special": False, "parse_special": False})["tokens"]
            if theirs != ids:
                wrong.append(line)
                if len(wrong) <= 5:
                    print(repr(line), ids, theirs)
        print(f"{len(lines)} lines, {len(wrong)} different")
    sys.exit(1 if wrong or difference > 0.02 else 0)


main()

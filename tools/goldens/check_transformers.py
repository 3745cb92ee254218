"""Compares calque with the real `transformers`: tools/goldens/check_transformers.py [MODEL…]     default: all of MODELS
Trains tiny models with calque and opens their checkpoints with transformers. For each of them, log-probabilities must agree to 1e-4,
greedy and beam search must give the same tokens, and the tokenizer the same ids. What only calque's own class can run must be refused
without trust_remote_code, and calque must open what save_pretrained writes."""

import contextlib
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

FOLDER = tempfile.TemporaryDirectory()
os.environ.update(HF_HOME=FOLDER.name, HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")  # read when transformers is imported
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALQUE = os.environ.get("CALQUE", str(ROOT / "build/calque"))
TEST = (ROOT / "data/everyday/natural-test.tsv").read_text(encoding="utf-8").splitlines()
PAIRS = [line.split("\t") for line in TEST[:80]]
LEARNED = 40  # pairs that the models are trained on
TOLERANCE, NEW_TOKENS = 1e-4, 60

# Together these have every option of a model.
MODELS = {
    "llama": "kv_heads: 2",
    "llama-causal": "attention: causal, tied_embeddings: false",  # the only one that needs no class of ours
    "llama-bias-untied": "bias: true, tied_embeddings: false, head_size: 6, rope_theta: 500",
    "llama-prompt": "prompt: 'French: {source} English: {target}'",
    "restart": "target_positions: restart, embedding_shortcut: true",
    "restart-causal": "target_positions: restart, attention: causal, prompt: 'French: {source} English: {target}'",
    "unigram": "activation: swiglu",  # as the first, with the other kind of tokenizer
    "gpt2": "architecture: gpt2",
    "qwen2": "architecture: qwen2, kv_heads: 1",
    "qwen3": "architecture: qwen3, head_size: 12, norm_epsilon: 1e-3",
    "gemma3": "architecture: gemma3, kv_heads: 2, sliding_window: 6, rope_theta: 1e6, "
              "layer_types: [sliding_attention, full_attention]",
    "learned": "architecture: calque, norm: layer, bias: true, positions: learned, activation: gelu, tied_embeddings: false",
    "sinusoidal": "architecture: calque, norm: layer, qkv_bias: true, positions: sinusoidal, activation: relu, scale_embeddings: true",
    "sliding": "architecture: calque, activation: geglu, sliding_window: 5, layer_types: [full_attention, sliding_attention], "
               "rope_local_theta: 100, qk_norm: true, post_norm: true, norm: rms_plus_one, kv_heads: 1",
    "layer-qk-norm": "architecture: calque, attention: causal, norm: layer, qk_norm: true, post_norm: true, norm_epsilon: 1e-2",
}


def calque(*words, text=None):
    done = subprocess.run([CALQUE, "-q", *map(str, words)], input=text, cwd=FOLDER.name, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"calque {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def train(name, options):
    """A model that knows a few pairs by heart: its translations differ from each other and come to an end."""
    folder, kind = pathlib.Path(FOLDER.name), "unigram" if name == "unigram" else "bpe"
    if not (folder / f"{kind}.model").exists():
        calque("tokenizer", "train", "-o", f"{kind}.model", "--kind", kind, "--vocabulary", 600, ROOT / "data/everyday/natural-train.tsv")
    (folder / "pairs.tsv").write_text("\n".join(TEST[:len(PAIRS)]) + "\n", encoding="utf-8")
    (folder / "learned.tsv").write_text("\n".join(TEST[:LEARNED]) + "\n", encoding="utf-8")
    (folder / f"{name}.yaml").write_text(
        f"data: {{train: learned.tsv, valid: learned.tsv}}\ntokenizer: {{path: {kind}.model}}\n"
        f"model: {{layers: 2, hidden_size: 32, heads: 4, mlp_size: 48, context_length: 320, {options}}}\n"
        "train: {steps: 200, warmup_steps: 10, batch_tokens: 1024, learning_rate: 1e-2, validate_every: 0, checkpoint_every: 0}\n")
    calque("train", f"{name}.yaml")
    return folder / "runs" / name / "checkpoints/last"


def odd_lines(count):
    """Characters of many scripts, composed and decomposed, but no marks at random: NFKC sorts several marks on a letter and composes
    one with the end of a ligature, SentencePiece's table does neither."""
    rng = random.Random(6)
    ranges = [(0x20, 0x7E), (0xA0, 0x17F), (0x370, 0x3FF), (0x2010, 0x2027), (0x3041, 0x30FF), (0x4E00, 0x4E40), (0xAC00, 0xD7A3),
              (0xFB00, 0xFB06), (0xFF01, 0xFF5E), (0x1F600, 0x1F64F)]
    texts = ["".join(chr(rng.randint(*rng.choice(ranges))) + rng.choice(["", "", " ", "  "]) for _ in range(rng.randint(1, 40)))
             for _ in range(count)]
    return [unicodedata.normalize(rng.choice(["NFC", "NFD"]), text) for text in texts]


def encode(checkpoint, lines):
    out = calque("tokenizer", "encode", checkpoint / "tokenizer.model", text="\n".join(lines) + "\n")
    return [[int(word) for word in line.split()] for line in out.split("\n")[:len(lines)]]


def check_tokenizer(checkpoint, tokenizer):
    texts = ["", " ", "  two  spaces  ", "<s> a<sep>b </s> <unk> <0x41>", "\u00a0narrow\u202fspaces", "👩‍👩‍👧 🇫🇷", "ﬁn ½ ①",
             "\ufeffbom\u200b", "…" * 40]
    lines = texts + odd_lines(500) + [part for line in TEST for part in line.split("\t")]
    expected, found = encode(checkpoint, lines), tokenizer(lines, add_special_tokens=False)["input_ids"]
    wrong = [i for i in range(len(lines)) if found[i] != expected[i]]
    assert not wrong, (len(wrong), lines[wrong[0]], found[wrong[0]], expected[wrong[0]])


def check_refusal(checkpoint, own_class):
    """Without trust_remote_code nothing may be opened as something that it is not."""
    stdin, sys.stdin = sys.stdin, io.StringIO()  # where transformers asks whether to trust the folder
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            transformers.AutoModelForCausalLM.from_pretrained(checkpoint)
        refused = False
    except ValueError as error:
        refused = "trust_remote_code" in str(error)
    finally:
        sys.stdin = stdin
    assert refused == own_class, "refused" if refused else "opened without trust_remote_code"


def pad(sequences, value, length):
    return torch.tensor([[value] * (length - len(one)) + list(one) for one in sequences])


@torch.no_grad()
def token_scores(model, prompts, targets, **more):
    """The log-probabilities of the targets' tokens, from one batch with padding on the left."""
    sequences = [prompt + target[:-1] for prompt, target in zip(prompts, targets)]
    length = max(map(len, sequences))
    mask = pad([[1] * len(one) for one in sequences], 0, length)
    scores = model(input_ids=pad(sequences, 0, length), attention_mask=mask, **more).logits.log_softmax(-1)
    return [scores[i, -len(target):].gather(1, torch.tensor(target)[:, None])[:, 0] for i, target in enumerate(targets)]


def check_scores(checkpoint, model, prompts, targets):
    lines = calque("score", checkpoint, "pairs.tsv", "--json").splitlines()
    expected = [torch.tensor(json.loads(line)["token_log_probabilities"]) for line in lines]
    difference = lambda found: max((a - b).abs().max().item() for a, b in zip(found, expected))
    worst = difference(token_scores(model, prompts, targets))
    alone = max((token_scores(model, [p], [t])[0] - e).abs().max().item() for p, t, e in zip(prompts, targets, expected))
    assert max(worst, alone) <= TOLERANCE, (worst, alone)
    # Prefix attention matters, and can be asked for explicitly.
    if model.config.model_type == "calque" and model.config.calque["attention"] == "prefix":
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        assert difference(token_scores(model, prompts, targets, prefix_lengths=lengths)) <= TOLERANCE
        assert difference(token_scores(model, prompts, targets, prefix_lengths=0 * lengths)) > 100 * TOLERANCE
    return max(worst, alone)


def generate(model, tokenizer, prompts, **options):
    length = max(map(len, prompts))
    out = model.generate(input_ids=pad(prompts, 0, length), attention_mask=pad([[1] * len(one) for one in prompts], 0, length),
                         do_sample=False, max_new_tokens=NEW_TOKENS, **options)[:, length:].tolist()
    end = model.config.eos_token_id
    return [tokenizer.convert_ids_to_tokens(ids[:ids.index(end) + 1] if end in ids else ids) for ids in out]


def check_search(checkpoint, model, tokenizer, sources, prompts, beam):
    lines = calque("translate", checkpoint, "--beam", beam, "--length-penalty", 0, "--no-early-stopping", "--max-length-ratio", 0.01,
                   "--max-length-extra", NEW_TOKENS, "--split-tokens", 1000, "--json", text="\n".join(sources) + "\n").splitlines()
    expected = [json.loads(line) for line in lines]
    options = {} if beam == 1 else {"num_beams": beam, "length_penalty": 0.0, "early_stopping": "never"}
    found = generate(model, tokenizer, prompts, **options)
    compared = [i for i, one in enumerate(expected) if not one["looped"]]  # calque searches again where a translation loops
    assert len(compared) >= len(expected) / 2, f"only {len(compared)} of {len(expected)} translations do not loop"
    for i in compared:
        assert found[i] == expected[i]["nbest"][0]["tokens"], (sources[i], found[i], expected[i]["nbest"][0]["tokens"])
        text = tokenizer.convert_tokens_to_string(found[i]).replace("</s>", "")
        assert " ".join(text.split()) == expected[i]["translation"], (text, expected[i]["translation"])
    if beam == 1:
        assert generate(model, tokenizer, prompts, use_cache=False) == found, "without a cache"
    return len(compared)


def check_saving(checkpoint, model, tokenizer):
    saved = pathlib.Path(tempfile.mkdtemp(dir=FOLDER.name))
    model.save_pretrained(saved)
    tokenizer.save_pretrained(saved)
    (saved / "tokenizer.model").write_bytes((checkpoint / "tokenizer.model").read_bytes())
    assert calque("score", saved, "pairs.tsv") == calque("score", checkpoint, "pairs.tsv"), "save_pretrained changed the model"


def check_model(name, options):
    checkpoint = train(name, options)
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint, trust_remote_code=True)
    check_tokenizer(checkpoint, tokenizer)
    own_class = name != "llama-causal"
    check_refusal(checkpoint, own_class)
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, trust_remote_code=own_class).eval()
    assert (model.config.model_type == "calque") == own_class

    sources, targets = [list(side) for side in zip(*PAIRS)]
    before = encode(checkpoint, ["French: "])[0] if "prompt:" in options else []
    begin, end = [model.config.bos_token_id] + before, [model.config.eos_token_id]
    separator = model.config.calque.get("separator", [tokenizer.convert_tokens_to_ids("<sep>")])
    prompts = [begin + ids + separator for ids in encode(checkpoint, sources)]
    assert tokenizer(sources)["input_ids"] == prompts, "the tokenizer does not put a source into its prompt"
    worst = check_scores(checkpoint, model, prompts, [ids + end for ids in encode(checkpoint, targets)])
    greedy, beams = (check_search(checkpoint, model, tokenizer, sources[:LEARNED], prompts[:LEARNED], beam) for beam in (1, 4))
    check_saving(checkpoint, model, tokenizer)
    print(f"{name}: log-probabilities differ by at most {worst:.1e}; {greedy} greedy and {beams} beam translations are equal", flush=True)


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(2)
    unknown = [name for name in sys.argv[1:] if name not in MODELS]
    if unknown:
        sys.exit(f"no such model: {', '.join(unknown)}; there are {', '.join(MODELS)}")
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    for name in sys.argv[1:] or MODELS:
        check_model(name, MODELS[name])


if __name__ == "__main__":
    main()

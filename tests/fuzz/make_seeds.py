"""Seeds for the fuzz targets: tiny files of every kind, and the inputs in tests/fuzz/findings/READER that once broke a reader.
Usage: make_seeds.py FOLDER, which gets a folder for each reader."""

import gzip
import json
import pathlib
import shutil
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
CONFIGS = HERE.parents[1] / "configs"
OUT = pathlib.Path(sys.argv[1])
WIDTH, INNER, LAYERS, HEADS, VOCABULARY, POSITIONS = 8, 8, 1, 2, 6, 8


def folder(name):
    (OUT / name).mkdir(parents=True, exist_ok=True)
    return OUT / name


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def gguf(architecture, kind):
    keys = [("general.architecture", 8, text(architecture)), ("tokenizer.ggml.model", 8, text("llama"))]
    for name, value in [("block_count", LAYERS), ("context_length", POSITIONS), ("embedding_length", WIDTH),
                        ("feed_forward_length", INNER), ("attention.head_count", HEADS), ("attention.sliding_window", 4)]:
        keys.append((f"{architecture}.{name}", 4, struct.pack("<I", value)))
    pieces = ["<unk>", "<s>", "</s>", "▁a", "b", "▁ab"]
    keys.append(("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 6) + b"".join(map(text, pieces))))
    keys.append(("tokenizer.ggml.scores", 9, struct.pack("<IQ6f", 6, 6, *range(6))))
    keys.append(("tokenizer.ggml.token_type", 9, struct.pack("<IQ6i", 5, 6, 2, 3, 3, 1, 1, 1)))
    for name, value in [("bos", 1), ("eos", 2), ("unknown", 0)]:
        keys.append((f"tokenizer.ggml.{name}_token_id", 4, struct.pack("<I", value)))
    norms, matrices = ["attn_norm", "ffn_norm"], [("attn_q", WIDTH), ("attn_k", WIDTH), ("attn_v", WIDTH),
                                                  ("attn_output", WIDTH), ("ffn_gate", INNER), ("ffn_up", INNER),
                                                  ("ffn_down", WIDTH)]
    tensors = [("token_embd.weight", [WIDTH, VOCABULARY]), ("output_norm.weight", [WIDTH])]
    for layer in range(LAYERS):
        tensors += [(f"blk.{layer}.{name}.weight", [WIDTH]) for name in norms]
        tensors += [(f"blk.{layer}.{name}.weight", [WIDTH, rows]) for name, rows in matrices]
    header, data = b"", b""
    for name, shape in tensors:
        count = WIDTH * (shape[1] if len(shape) > 1 else 1)
        header += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(data))
        data += b"\x01\x02" * count if kind else struct.pack(f"<{count}f", *([0.5] * count))
        data += b"\0" * (-len(data) % 32)
    file = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    file += b"".join(text(name) + struct.pack("<I", number) + value for name, number, value in keys) + header
    return file + b"\0" * (-len(file) % 32) + data


def llama2c(version):
    weights = VOCABULARY * WIDTH + LAYERS * (2 * WIDTH + 4 * WIDTH * WIDTH + 3 * WIDTH * INNER) + WIDTH
    numbers = struct.pack("<7i", WIDTH, INNER, LAYERS, HEADS, HEADS, VOCABULARY, POSITIONS)
    if version == 0:
        return numbers + struct.pack(f"<{weights + POSITIONS * WIDTH // HEADS}f", *([0.5] * (weights + POSITIONS * WIDTH // HEADS)))
    return (struct.pack("<Ii", 0x616B3432, 1) + numbers + b"\x01").ljust(256, b"\0") + struct.pack(f"<{weights}f", *([0.5] * weights))


def byte_level():
    pieces = ["<s>", "</s>", "L", "l", "a", "Ġ", "Ġa", "la", "Ã", "©", "Ã©", "1", "2", "Ċ"]
    return {"version": "1.0", "normalizer": None, "decoder": {"type": "ByteLevel"},
            "added_tokens": [{"id": i, "content": pieces[i], "special": True} for i in (0, 1)],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True},
                                                                    {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}]},
            "model": {"type": "BPE", "vocab": {piece: i for i, piece in enumerate(pieces)},
                      "merges": ["Ġ a", ["l", "a"], "Ã ©"]}}


def sentence_piece():
    def field(number, value):  # Protocol Buffers, lengths below 128
        return bytes([number << 3 | 2, len(value)]) + value

    kinds = [("<unk>", 2), ("<s>", 3), ("</s>", 3), ("▁a", 1), ("a", 1), ("▁", 1), ("▁▁", 4), ("l", 1), ("la", 1)]
    model = b"".join(field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", -float(i)) + bytes([3 << 3, kind]))
                     for i, (text, kind) in enumerate(kinds))
    trainer = bytes([3 << 3, 2, 4 << 3, len(kinds)])
    return model + field(2, trainer) + field(3, field(1, b"identity"))


def safetensors(shapes):
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + bytes(at)


def llama_shapes():
    shapes = {"model.embed_tokens.weight": [VOCABULARY, WIDTH], "model.norm.weight": [WIDTH]}
    block = {"input_layernorm": [WIDTH], "post_attention_layernorm": [WIDTH], "mlp.gate_proj": [INNER, WIDTH],
             "mlp.up_proj": [INNER, WIDTH], "mlp.down_proj": [WIDTH, INNER]}
    block.update({f"self_attn.{one}_proj": [WIDTH, WIDTH] for one in "qkvo"})
    return shapes | {f"model.layers.0.{name}.weight": shape for name, shape in block.items()}


def packed(files):  # the form that hf_folder.cpp unpacks
    return b"".join(f"{name} {len(content)}\n".encode() + content for name, content in files.items())


def hf_folders():
    for path in sorted((GOLDEN / "models").glob("*/config.json")):
        yield path.parent.name, {"config.json": path.read_bytes(), "tokenizer.json": json.dumps(byte_level()).encode()}
    config = {"model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": INNER,
              "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "max_position_embeddings": POSITIONS,
              "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": [1]}
    weights = safetensors(llama_shapes())
    names = {name: "model.safetensors" for name in llama_shapes()}
    tokens = {"bos_token": "<s>", "eos_token": {"content": "</s>"}}
    yield "complete", {"config.json": json.dumps(config).encode(), "model.safetensors": weights,
                       "tokenizer.json": json.dumps(byte_level()).encode(),
                       "tokenizer_config.json": json.dumps(tokens).encode()}
    yield "index", {"config.json": json.dumps(config).encode(), "model.safetensors": weights,
                    "model.safetensors.index.json": json.dumps({"weight_map": names}).encode(),
                    "manifest.json": b'{"config.json": "0000000000000000"}'}
    own = {"model_type": "calque", "vocab_size": VOCABULARY,
           "calque": {"hidden_size": WIDTH, "layers": LAYERS, "heads": HEADS, "mlp_size": INNER, "attention": "prefix",
                      "base": ".", "base_inside": "../folder", "base_hash": "0", "prompt": "{source} = ",
                      "lora": {"rank": 1, "scale": 1.0, "target_modules": ["q"], "first_layer": 0}}}
    yield "adapters", {"config.json": json.dumps(own).encode(), "model.safetensors": safetensors({}),
                       "adapters.safetensors": safetensors({"blocks.0.adapter_a": [1, WIDTH]}),
                       "state.safetensors": safetensors({}).replace(b"{}", b'{"__metadata__":{"progress":"{}"}}')}


def main():
    for path in sorted(GOLDEN.rglob("*.safetensors")):
        if path.stat().st_size < 40000:
            shutil.copy(path, folder("safetensors") / path.relative_to(GOLDEN).as_posix().replace("/", "-"))
    for architecture in ("llama", "qwen3", "gemma3", "gpt2"):
        for kind in (0, 1, 8, 12):
            (folder("gguf") / f"{architecture}-{kind}").write_bytes(gguf(architecture, kind))
    for version in (0, 1):
        (folder("llama2c") / str(version)).write_bytes(llama2c(version))
    (folder("tokenizer") / "byte-level").write_text(json.dumps(byte_level()))
    (folder("tokenizer") / "sentencepiece").write_bytes(sentence_piece())
    (folder("tokenizer") / "llama2c").write_bytes(
        struct.pack("<i", 4) + b"".join(struct.pack("<fi", 0.0, len(piece)) + piece for piece in [b"<unk>", b"a", b" b", b"<0x0A>"]))
    for name, files in hf_folders():
        (folder("hf_folder") / name).write_bytes(packed(files))
    pairs = "Le chat dort.\tThe cat sleeps.\tx\n\n\u00a0Il lit.\r\tHe reads.\x01\n".encode()
    (folder("corpus") / "plain").write_bytes(pairs)
    (folder("corpus") / "gzip").write_bytes(gzip.compress(pairs, mtime=0))
    requests = [b'{"text": ["Le chat.", "b"], "beam": 3, "sample": true, "top_p": 0.5}', b"text=a%20b&text=c&target_lang=EN",
                b'x\n--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nun\r\n--x--\r\n', b"a=1&b=%26",
                b'chat\tcat\n"a, b","say ""c"""\n', "<p>Le <b>chat <i>noir</i></b> dort&nbsp;!</p><pre>x</pre><img a='>'>é".encode(),
                b"<p>un <x>deux</x></p><![CDATA[ a ]]><e/>"]
    for i, body in enumerate(requests):
        (folder("request") / str(i)).write_bytes(bytes([i]) + body)
    for path in CONFIGS.glob("*.yaml"):
        shutil.copy(path, folder("config"))
    for path in (HERE / "findings").glob("*/*"):
        shutil.copy(path, folder(path.parent.name) / f"found-{path.name}")


main()

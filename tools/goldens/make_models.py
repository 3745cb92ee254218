"""Golden files for importing models: tiny random Llama, GPT-2, Qwen and Gemma models with the logits of `transformers`, and blocks of
every quantised type with their values according to the `gguf` package. Writes tests/golden/models."""

import json
import pathlib
import shutil

import gguf
import numpy
import torch
import transformers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/models"
IDS = [1, 5, 7, 9, 30, 2, 11, 5]


def save(name, model, norm=1.0):
    folder = OUT / name
    model = model.eval()
    with torch.no_grad():
        for parameter in model.parameters():  # larger than at initialisation, so that a mistake shows
            parameter.copy_(torch.randn_like(parameter) * 0.3 + (norm if parameter.dim() == 1 else 0.0))
        model.tie_weights()
        logits = model(torch.tensor([IDS])).logits[0]
    model.save_pretrained(folder, max_shard_size="12KB" if name.endswith("sharded") else "1GB")
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "logits.json").write_text(json.dumps({"ids": IDS, "logits": [[round(float(x), 6) for x in row] for row in logits]}) + "\n")


SIZES = dict(vocab_size=40, hidden_size=16, intermediate_size=28, num_attention_heads=4, max_position_embeddings=32,
             rms_norm_eps=1e-5)


def llama(**more):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(num_hidden_layers=2, **SIZES, **more))


def gemma():  # a sliding window shorter than the text, and a layer with full attention
    return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(
        num_hidden_layers=7, num_key_value_heads=2, head_dim=6, query_pre_attn_scalar=6, sliding_window=4, **SIZES))


def blocks():
    rng = numpy.random.default_rng(3)
    result = {}
    for name in ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"):
        kind = gguf.GGMLQuantizationType[name]
        values, size = gguf.GGML_QUANT_SIZES[kind]
        count = 64 if values == 1 else 2
        raw = rng.integers(0, 256, size * count, dtype=numpy.uint8)
        if values == 1:
            raw = {"F32": rng.normal(size=count).astype("<f4"), "F16": rng.normal(size=count).astype("<f2")}.get(name)
            if raw is None:
                raw = (rng.normal(size=count).astype("<f4").view("<u4") >> 16).astype("<u2")
            raw = raw.view(numpy.uint8)
        else:  # finite scales of normal size, at their places in a block
            places = {"Q6_K": [208], "Q4_1": [0, 2], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2]}.get(name, [0])
            grid = raw.reshape(count, size)
            for place in places:
                grid[:, place:place + 2] = rng.normal(scale=0.1, size=count).astype("<f2").view(numpy.uint8).reshape(count, 2)
            raw = grid.reshape(-1)
        shaped = raw.reshape(1, -1)
        if name == "F32":
            floats = raw.view("<f4")
        elif name == "F16":
            floats = raw.view("<f2").astype("<f4")
        else:
            floats = gguf.quants.dequantize(shaped, kind).reshape(-1)
        result[name] = {"bytes": raw.tobytes().hex(), "values": [float(x) for x in floats]}
    return result


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    torch.manual_seed(5)
    save("llama", llama(tie_word_embeddings=True))
    save("llama-grouped-untied", llama(num_key_value_heads=2, tie_word_embeddings=False))
    save("llama-sharded", llama(num_key_value_heads=1, tie_word_embeddings=True, head_dim=6, rope_theta=500.0))
    save("gpt2", transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=40, n_positions=32, n_embd=16, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2)))
    save("qwen2", transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        num_hidden_layers=2, num_key_value_heads=2, tie_word_embeddings=True, **SIZES)))
    save("qwen3", transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        num_hidden_layers=2, num_key_value_heads=2, head_dim=6, tie_word_embeddings=False, **SIZES)))
    save("gemma3", gemma(), norm=0.0)
    (OUT / "blocks.json").write_text(json.dumps(blocks()) + "\n")
    print("tests/golden/models:", transformers.__version__)


main()

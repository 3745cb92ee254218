"""Golden files for byte-level BPE: two tokenizers trained on data/everyday by the `tokenizers` package (GPT-2's pre-tokenisation, and
SmolLM2's, which splits digits), and the token ids that it gives. Writes tests/golden/tokenizer."""

import json
import random

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from make_tokenizer import ODD, OUT, random_text, sentences


def main():
    rng = random.Random(2)
    lines = sentences()
    texts = ODD + ["it's we'll I'D 'S don't", "12345 a1b22 ١٢٣", "  lead", "trail  ", "a\n\nb\r\n c", "\u0085\u000b x"]
    texts += rng.sample(lines, 120) + [random_text(rng) for _ in range(150)]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for name, split in (("byte-level", byte_level),
                        ("byte-level-digits", pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level]))):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = split
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.train_from_iterator(rng.sample(lines, 4000), trainers.BpeTrainer(
            vocab_size=600, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"], show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        tokenizer.post_processor = processors.TemplateProcessing(single="<|im_start|> $A", pair="<|im_start|> $A $B:1",
                                                                  special_tokens=[("<|im_start|>", 1), ("<|im_end|>", 2)])
        model = json.loads(tokenizer.to_str())
        model["ids"] = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in texts]
        (OUT / f"{name}.json").write_text(json.dumps(model, ensure_ascii=True) + "\n", encoding="utf-8")
        print(f"{name}: {len(texts)} texts")


main()

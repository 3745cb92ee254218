#include "calque/decode/decode_config.h"

#include "calque/base/error.h"

namespace calque {

Fields fields(DecodeConfig& c) {
  return {
      field("beam", c.beam, between(1, 1000), "beam size; 1: greedy search"),
      field("nbest", c.nbest, between(1, 1000), "translations per sentence, the best first"),
      field("length_penalty", c.length_penalty, between(0.0, 10.0),
            "exponent of the length normalisation: scores are divided by ((5 + tokens) / 6)^x; 0: none"),
      field("early_stopping", c.early_stopping,
            "stop when as many translations as the beam holds have ended; false: when none can get better")
          .formerly("early_stop"),
      field("max_length_ratio", c.max_length_ratio, between(0.01, 1000.0),
            "longest translation, as a multiple of the source's tokens, plus max_length_extra"),
      field("max_length_extra", c.max_length_extra, between(0, 1'000'000), "tokens added to max_length_ratio")
          .formerly("max_length_more"),
      field("no_repeat_ngram", c.no_repeat_ngram, between(0, 1000),
            "never repeat an n-gram of this many tokens; 0: off"),
      field("sample", c.sample, "sample tokens from their probabilities instead of searching"),
      field("temperature", c.temperature, between(1e-6, 1e6), "sampling temperature"),
      field("top_k", c.top_k, between(0, 1'000'000), "sample from the k most probable tokens only; 0: all"),
      field("top_p", c.top_p, between(0.0, 1.0),
            "sample from the smallest set of tokens with this total probability"),
      field("seed", c.seed, at_least(0), "random seed of sampling"),
      field("split_tokens", c.split_tokens, at_least(1),
            "split lines with more tokens than this into sentences, translate these and join them"),
      field("split_sentences", c.split_sentences,
            "split every line into sentences, for a model that was trained on single ones"),
      field("batch", c.batch, between(1, 100'000), "sentences translated at the same time"),
      field("shots", c.shots,
            "TSV of examples put before each sentence (few-shot), for a model not trained to translate"),
  };
}

void check_decode(const DecodeConfig& c) {
  if (c.nbest > c.beam && !c.sample) {
    throw UserError(
        fmt::format("decode.nbest={} is larger than decode.beam={}", c.nbest, c.beam),
        "a list is taken from the beam: raise the beam size, which may change the best translation");
  }
}

}  // namespace calque

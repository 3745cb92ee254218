#include "calque/decode/decode_config.h"

#include "calque/base/error.h"

namespace calque {

Fields fields(DecodeConfig& c) {
  return {
      field("beam", c.beam, between(1, 1000), "translations kept while searching; 1: greedy"),
      field("nbest", c.nbest, between(1, 1000), "translations to give for each sentence, the best first"),
      field("length_penalty", c.length_penalty, between(0.0, 10.0),
            "scores are divided by ((5 + tokens) / 6) to this power; 0: not at all"),
      field(
          "early_stop", c.early_stop,
          "stop once as many translations as the beam is wide have ended, not only when none can get better"),
      field("max_length_ratio", c.max_length_ratio, above(0.0),
            "tokens of a translation at most, as a multiple of the source's, and max_length_more"),
      field("max_length_more", c.max_length_more, at_least(0), "tokens on top of max_length_ratio"),
      field("no_repeat_ngram", c.no_repeat_ngram, at_least(0),
            "no n-gram of this many tokens twice in a translation; 0: whatever comes"),
      field("sample", c.sample, "draw tokens by their probability instead of searching for the best"),
      field("temperature", c.temperature, above(0.0), "when sampling: below 1 sharper, above 1 flatter"),
      field("top_k", c.top_k, at_least(0), "when sampling: only among so many; 0: all"),
      field("top_p", c.top_p, between(0.0, 1.0),
            "when sampling: only among the most probable that sum to this"),
      field("seed", c.seed, at_least(0), "when sampling: what is drawn from"),
      field("split_tokens", c.split_tokens, at_least(1),
            "a line of more tokens is split at the ends of its sentences and joined again"),
      field("batch", c.batch, between(1, 100'000), "sentences translated at one time"),
      field("shots", c.shots,
            "examples, source<TAB>target, put before each sentence, for a model that was never trained to "
            "translate"),
  };
}

void check_decode(const DecodeConfig& c) {
  if (c.nbest > c.beam && !c.sample) {
    throw UserError(fmt::format("decode.nbest={} is more than decode.beam={} finds", c.nbest, c.beam),
                    "raise decode.beam");
  }
}

}  // namespace calque

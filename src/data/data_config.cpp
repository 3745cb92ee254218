#include "calque/data/data_config.h"

namespace calque {

Fields fields(DataConfig& c) {
  return {
      items("train", c.train, "pairs", "training data"),
      items("valid", c.valid, "pairs", "validation data, to measure progress during training"),
      items("test", c.test, "pairs", "test data, to evaluate the trained model"),
      field("max_tokens", c.max_tokens, at_least(2),
            "maximum length of a pair (source plus target tokens); longer pairs are left out of training"),
      field("shards", c.shards, at_least(1),
            "parts that the tokenised training data is kept in, for corpora larger than a machine: each "
            "process "
            "opens its own alone. 1: every process opens all of it"),
  };
}

}  // namespace calque

#include "calque/data/data_config.h"

namespace calque {

Fields fields(DataConfig& c) {
  return {
      items("train", c.train, "pairs", "what the model learns from"),
      items("valid", c.valid, "pairs", "what progress is measured on while training"),
      items("test", c.test, "pairs", "what the finished model is judged by"),
      field("max_tokens", c.max_tokens, at_least(2),
            "longer pairs (source and target pieces) are left out of training"),
  };
}

}  // namespace calque

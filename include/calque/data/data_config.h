// DataConfig: the `data` section of a configuration.
#pragma once

#include <filesystem>

#include "calque/data/corpus.h"

namespace calque {

struct DataConfig {
  Corpus train;
  Corpus valid;
  Corpus test;
  int64_t max_tokens = 256;
  int64_t shards = 1;
};
Fields fields(DataConfig& config);

}  // namespace calque

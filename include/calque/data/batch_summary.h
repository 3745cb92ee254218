// BatchSummary: statistics of one epoch of batches.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "calque/data/batch_stream.h"

namespace calque {

struct BatchSummary {
  int64_t pairs = 0, batches = 0, tokens = 0, labels = 0;
  int64_t batch_tokens = 0;
  double fill = 0;  // mean number of tokens per batch, relative to batch_tokens
  double tokens_per_second = 0, seconds = 0;
  int64_t vocabulary = 0;

  nlohmann::json to_json() const;
  std::string to_text() const;
};

BatchSummary summarise_batches(const BatchStreamOptions& options, const Tokenizer& tokenizer,
                               DataCache& cache);

}  // namespace calque

// Scorer: how probable a model finds given translations, token by token, in flat batches without a search.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "calque/decode/search.h"

namespace calque {

struct TokenPair {
  std::vector<int32_t> source;
  std::vector<int32_t> target;
};

// For each pair the log-probabilities of the target's tokens and of the end, in order. A pair that is longer
// than the model has positions gives an empty list.
std::vector<std::vector<float>> score_pairs(const SearchModel& model, const SequenceFormat& format,
                                            const std::vector<TokenPair>& pairs, int64_t batch_rows = 2048);

}  // namespace calque

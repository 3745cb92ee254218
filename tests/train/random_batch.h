// Pairs of random tokens for a model with a vocabulary of 50; of several ranks, a rank's share of them.
#pragma once

#include <random>
#include <vector>

#include "calque/data/batch.h"

namespace calque {

inline Batch random_batch(uint32_t seed, int pairs = 12, int rank = 0, int ranks = 1) {
  std::mt19937 random(seed);
  Batch batch;
  for (int i = 0; i < pairs; ++i) {
    std::vector<int32_t> source(1 + random() % 8), target(1 + random() % 8);
    for (auto* side : {&source, &target}) {
      for (int32_t& token : *side) token = static_cast<int32_t>(4 + random() % 46);
    }
    if (i % ranks == rank) batch.add({{1}, {3}, 2}, source, target);
  }
  return batch;
}

}  // namespace calque

// Random pairs for the self-test: the target is a simple function of the source, which a model can learn.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "calque/data/batch.h"

namespace calque {

inline const SequenceFormat selftest_format = {{1}, {3}, 2};

inline std::vector<int32_t> selftest_source(std::mt19937& random, int64_t tokens, int64_t vocabulary) {
  std::vector<int32_t> source(static_cast<size_t>(tokens));
  for (int32_t& token : source)
    token = static_cast<int32_t>(4 + static_cast<int64_t>(random()) % (vocabulary - 4));
  return source;
}

// Pairs of up to `longest` tokens per side until there are `rows` rows: a pair of single tokens, a longest
// one, and others between.
inline Batch selftest_batch(uint32_t seed, int64_t rows, int64_t longest, int64_t vocabulary) {
  std::mt19937 random(seed);
  Batch batch;
  while (batch.rows() < rows) {
    const int64_t tokens = batch.pairs() == 0   ? 1
                           : batch.pairs() == 1 ? longest
                                                : 1 + static_cast<int64_t>(random()) % (longest / 2);
    const auto source = selftest_source(random, tokens, vocabulary);
    batch.add(selftest_format, source, std::vector<int32_t>(source.rbegin(), source.rend()));
  }
  return batch;
}

}  // namespace calque

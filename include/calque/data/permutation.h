// Permutation: a pseudo-random order of 0 … n-1 that depends only on its key. Any element is computed
// directly, without a table: a Feistel network over the next power of four, repeated until the result is less
// than n (cycle walking).
#pragma once

#include <cstdint>

namespace calque {

class Permutation {
 public:
  Permutation(int64_t size, uint64_t key);
  int64_t operator()(int64_t place) const;  // the element at position `place`

 private:
  int64_t size_;
  uint64_t key_;
  int half_bits_;
};

}  // namespace calque

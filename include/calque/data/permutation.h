// Permutation: a random-looking order of 0 … n-1 that is a pure function of its key. Any place in it is
// computed at once, without a table: a Feistel network over the next power of four, walked until it lands
// inside n.
#pragma once

#include <cstdint>

namespace calque {

class Permutation {
 public:
  Permutation(int64_t size, uint64_t key);
  int64_t operator()(int64_t place) const;  // what stands at `place`

 private:
  int64_t size_;
  uint64_t key_;
  int half_bits_;
};

}  // namespace calque

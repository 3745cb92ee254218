// NumpyRandom: the same random numbers as numpy.random.default_rng(seed), which is PCG64 (O'Neill, 2014)
// seeded by a SeedSequence. With it, resampling draws the same sentences as sacreBLEU.
#pragma once

#include <cstdint>

namespace calque {

class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed);

  uint64_t next_64();
  uint32_t next_32();  // the low half of a 64-bit number, then its high half

  // Uniform in 0 … count - 1, like Generator.integers and Generator.choice; count > 0.
  uint32_t below(uint32_t count);
  // Like Generator.integers(2, dtype=bool): each 32-bit number gives 32 results, the lowest bit first.
  bool coin();

 private:
  void step();

  __extension__ unsigned __int128 state_ = 0, increment_ = 0;
  uint32_t kept_ = 0;
  bool has_kept_ = false;
  uint32_t coins_ = 0;
  int coins_left_ = 0;
};

}  // namespace calque

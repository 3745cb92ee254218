// NumpyRandom: the stream of numpy.random.default_rng(seed), PCG64 (O'Neill, 2014) behind a SeedSequence, so
// that resampling tests draw what sacreBLEU's draw.
#pragma once

#include <cstdint>

namespace calque {

class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed);

  uint64_t next_64();
  uint32_t next_32();  // the low half of a 64-bit number first, then its high half

  // Evenly from 0 … count - 1, as Generator.integers and Generator.choice draw; count > 0.
  uint32_t below(uint32_t count);
  // As Generator.integers(2, dtype=bool): 32 of them from one 32-bit number, the lowest bit first.
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

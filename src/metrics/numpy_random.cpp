#include "calque/metrics/numpy_random.h"

#include <array>
#include <bit>
#include <cstddef>

namespace calque {
namespace {

// NumPy's SeedSequence: hashes the seed into a pool of four words, mixes them, and derives the state.
std::array<uint64_t, 4> seed_words(uint32_t seed) {
  uint32_t constant = 0x43b0d7e5;
  const auto hash = [&](uint32_t value) {
    value ^= constant;
    constant *= 0x931e8875;
    value *= constant;
    return value ^ (value >> 16);
  };
  std::array<uint32_t, 4> pool{};
  for (std::size_t i = 0; i < 4; ++i) pool[i] = hash(i == 0 ? seed : 0);
  for (std::size_t from = 0; from < 4; ++from) {
    for (std::size_t to = 0; to < 4; ++to) {
      if (from == to) continue;
      const uint32_t mixed = 0xca01f9ddU * pool[to] - 0x4973f715U * hash(pool[from]);
      pool[to] = mixed ^ (mixed >> 16);
    }
  }
  constant = 0x8b51f9dd;
  std::array<uint64_t, 4> words{};
  for (std::size_t i = 0; i < 8; ++i) {
    uint32_t value = pool[i % 4] ^ constant;
    constant *= 0x58f38ded;
    value *= constant;
    value ^= value >> 16;
    words[i / 2] |= static_cast<uint64_t>(value) << (32 * (i % 2));
  }
  return words;
}

__extension__ using Wide = unsigned __int128;

}  // namespace

NumpyRandom::NumpyRandom(uint32_t seed) {
  const auto words = seed_words(seed);
  increment_ = ((static_cast<Wide>(words[2]) << 64 | words[3]) << 1) | 1;
  step();
  state_ += static_cast<Wide>(words[0]) << 64 | words[1];
  step();
}

void NumpyRandom::step() {
  constexpr Wide multiplier = static_cast<Wide>(0x2360ED051FC65DA4ULL) << 64 | 0x4385DF649FCCF645ULL;
  state_ = state_ * multiplier + increment_;
}

uint64_t NumpyRandom::next_64() {
  step();
  const auto high = static_cast<uint64_t>(state_ >> 64), low = static_cast<uint64_t>(state_);
  return std::rotr(high ^ low, static_cast<int>(high >> 58));
}

uint32_t NumpyRandom::next_32() {
  if (has_kept_) {
    has_kept_ = false;
    return kept_;
  }
  const uint64_t both = next_64();
  kept_ = static_cast<uint32_t>(both >> 32);
  has_kept_ = true;
  return static_cast<uint32_t>(both);
}

// Lemire (2019): the high half of a product is uniform, once the few low halves that cause bias are rejected.
uint32_t NumpyRandom::below(uint32_t count) {
  if (count <= 1) return 0;  // no random number is used
  uint64_t product = static_cast<uint64_t>(next_32()) * count;
  if (static_cast<uint32_t>(product) < count) {
    const uint32_t threshold = (0xFFFFFFFFU - (count - 1)) % count;
    while (static_cast<uint32_t>(product) < threshold) product = static_cast<uint64_t>(next_32()) * count;
  }
  return static_cast<uint32_t>(product >> 32);
}

bool NumpyRandom::coin() {
  if (coins_left_ == 0) {
    coins_ = next_32();
    coins_left_ = 32;
  } else {
    coins_ >>= 1;
  }
  --coins_left_;
  return (coins_ & 1) != 0;
}

}  // namespace calque

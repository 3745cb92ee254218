#include "calque/data/permutation.h"

#include <algorithm>
#include <bit>

#include "calque/base/hash.h"

namespace calque {
namespace {

constexpr int rounds = 6;

}  // namespace

Permutation::Permutation(int64_t size, uint64_t key)
    : size_(size),
      key_(key),
      half_bits_((static_cast<int>(std::bit_width(static_cast<uint64_t>(size))) + 1) / 2) {}

int64_t Permutation::operator()(int64_t place) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<uint64_t>(place);
  do {
    uint64_t left = value >> half_bits_;
    uint64_t right = value & mask;
    for (int round = 0; round < rounds; ++round) {
      const uint64_t next = left ^ (mix(key_, right, round) & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(value);
}

}  // namespace calque

#include "calque/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>
#include <random>

#include "calque/base/file.h"

namespace calque {

Hasher::Hasher() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state_);
}
Hasher::~Hasher() { XXH3_freeState(state_); }
void Hasher::add(const void* bytes, size_t size) { XXH3_64bits_update(state_, bytes, size); }
uint64_t Hasher::value() const { return XXH3_64bits_digest(state_); }

uint64_t hash_bytes(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

// Reads through a small buffer, not a memory map, so that a large file does not add to resident memory.
uint64_t hash_file(const std::filesystem::path& path) {
  Hasher hasher;
  for_each_block(path, [&](std::string_view block) { hasher.add(block); });
  return hasher.value();
}

std::string hex(uint64_t hash) { return fmt::format("{:016x}", hash); }

std::string random_name() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

// Two rounds of the finaliser of SplitMix64 (Steele, Lea and Flood, 2014); `b` enters both.
uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9E3779B97F4A7C15ULL * (b + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  x ^= x >> 31;
  x += 0x9E3779B97F4A7C15ULL + b;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace calque

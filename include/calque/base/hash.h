// Hasher: the XXH3 hash of a stream of bytes, to identify files and to detect corruption (not tampering).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace calque {

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void add(const void* bytes, size_t size);
  void add(std::string_view text) { add(text.data(), text.size()); }
  template <class T>
  void add_value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    add(&value, sizeof value);
  }
  uint64_t value() const;

 private:
  XXH3_state_s* state_;
};

uint64_t hash_bytes(std::string_view bytes);
uint64_t hash_file(const std::filesystem::path& path);
std::string hex(uint64_t hash);  // 16 hexadecimal digits
std::string random_name();       // 32 hexadecimal digits, from the system's random device

// A pseudo-random 64-bit value that depends on all arguments; used to derive random seeds.
uint64_t mix(uint64_t a, uint64_t b);
inline uint64_t mix(uint64_t a, uint64_t b, uint64_t c) { return mix(mix(a, b), c); }

}  // namespace calque

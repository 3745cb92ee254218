// The header of a token store's file, for those who write and read it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "calque/base/hash.h"
#include "calque/data/token_store.h"

namespace calque {

constexpr std::array<char, 8> token_store_magic = {'c', 'a', 'l', 'q', 'u', 'e', 'T', 'S'};
constexpr uint32_t token_store_version = 3;

struct TokenStoreHeader {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t is_text;
  uint64_t key;
  uint64_t tokens;
  uint64_t records;
  uint64_t groups;
  uint64_t parts;
  uint64_t skipped_empty;
  uint64_t skipped_long;
  uint64_t payload_checksum;  // of everything after the header
  uint64_t header_checksum;   // of all header fields before this one
};
static_assert(sizeof(TokenStoreHeader) == 88 && sizeof(PairRecord) == 24 && sizeof(LengthGroup) == 24);

inline uint64_t checksum(const TokenStoreHeader& header) {
  return hash_bytes({reinterpret_cast<const char*>(&header), offsetof(TokenStoreHeader, header_checksum)});
}

inline uint64_t padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace calque

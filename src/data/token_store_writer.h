// TokenStoreWriter: writes the file of one token store, pair by pair, in constant memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "calque/data/token_store.h"

namespace calque {

class TokenStoreWriter {
 public:
  TokenStoreWriter(const std::filesystem::path& path, uint64_t key);

  // `ids` are the source's tokens and the target's; pairs come in the order of the corpus.
  void add(uint32_t part, uint32_t line, uint32_t source_tokens, std::span<const int32_t> ids);
  uint64_t pairs() const { return pairs_; }

  uint64_t skipped_empty = 0;
  uint64_t skipped_long = 0;

  // Sorts the records and gives the file its name.
  void commit(bool is_text, uint64_t parts);

 private:
  void append(const void* bytes, size_t size);
  void flush();
  std::vector<LengthGroup> sort_records();

  uint64_t key_;
  AtomicFile file_;
  std::optional<AtomicFile> unsorted_;  // records in corpus order; never committed, so it is deleted
  std::vector<int32_t> ids_;            // that are not written yet
  std::vector<PairRecord> records_;
  Hasher payload_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts_;  // (length, part) → number of pairs
  uint64_t tokens_ = 0;
  uint64_t pairs_ = 0;
};

}  // namespace calque

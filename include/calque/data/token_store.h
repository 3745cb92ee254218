// TokenStore: a tokenised corpus in one memory-mapped file, its pairs sorted by length. It is made once, in
// parallel, within constant memory; it is reused while corpus, tokenizer and limits stay the same, and it is
// never half-written.
//
// The file: header | token ids, int32, in corpus order | records sorted by (length, part) | groups.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calque/base/file.h"
#include "calque/data/corpus.h"
#include "calque/data/tokenizer.h"

namespace calque {

struct TokenStoreOptions {
  int64_t max_tokens = 256;  // longer pairs (source and target pieces together) are left out, and counted
  double sampling = 0;       // of the tokenizer: another segmentation for another `sampling_seed`
  uint64_t sampling_seed = 0;
  int threads = 2;
};

// Where a pair stands in the corpus, and how long it is.
struct PairRecord {
  uint64_t first_token;
  uint32_t source_tokens;
  uint32_t target_tokens;
  uint32_t part;
  uint32_t line;
  uint32_t tokens() const { return source_tokens + target_tokens; }
};

// Consecutive records of one length and one part.
struct LengthGroup {
  uint32_t tokens;
  uint32_t part;
  uint64_t first_record;
  uint64_t count;
};

class TokenStore {
 public:
  // Opens `path` if it holds just this corpus, tokenizer and options; builds it otherwise.
  static TokenStore open_or_build(const std::filesystem::path& path, const Corpus& corpus,
                                  const Tokenizer& tokenizer, const TokenStoreOptions& options);
  static void build(const std::filesystem::path& path, const Corpus& corpus, const Tokenizer& tokenizer,
                    const TokenStoreOptions& options);
  // Opens and verifies: magic, version, sizes, checksum.
  explicit TokenStore(const std::filesystem::path& path);

  int64_t pairs() const { return static_cast<int64_t>(records_.size()); }
  int64_t tokens() const { return static_cast<int64_t>(tokens_.size()); }
  bool is_text() const { return is_text_; }
  const PairRecord& record(int64_t index) const { return records_[index]; }
  std::span<const int32_t> source(int64_t index) const;
  std::span<const int32_t> target(int64_t index) const;
  std::span<const LengthGroup> groups() const { return groups_; }
  int64_t parts() const { return parts_; }
  int64_t skipped_empty() const { return skipped_empty_; }
  int64_t skipped_long() const { return skipped_long_; }
  uint64_t key() const { return key_; }  // of corpus, tokenizer and options

 private:
  MappedFile file_;
  std::span<const int32_t> tokens_;
  std::span<const PairRecord> records_;
  std::span<const LengthGroup> groups_;
  bool is_text_ = false;
  int64_t parts_ = 0;
  int64_t skipped_empty_ = 0;
  int64_t skipped_long_ = 0;
  uint64_t key_ = 0;
};

// What a store depends on: two stores of one key hold the same.
uint64_t token_store_key(const Corpus& corpus, const Tokenizer& tokenizer, const TokenStoreOptions& options);

}  // namespace calque

// TokenStore: a tokenised corpus, or a shard of it, in one memory-mapped file, with pairs sorted by length.
// It is built in parallel with constant memory and written atomically. It is reused until the corpus, the
// tokenizer or the options change.
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
  int64_t max_tokens = 256;  // longer pairs (source plus target tokens) are left out and counted
  double sampling = 0;       // see Tokenizer::encode_sampled; 0: off
  uint64_t sampling_seed = 0;
  int64_t shard = 0;  // of `shards`: the pairs at every Nth line
  int64_t shards = 1;
  int threads = 2;                               // mutate: speed only
  std::optional<CorpusState> corpus_state = {};  // if already known
};

struct TokenStoreShard {
  int64_t number;  // from 0
  std::filesystem::path path;
};

// The position of a pair in the corpus, and its length.
struct PairRecord {
  uint64_t first_token;
  uint32_t source_tokens;
  uint32_t target_tokens;
  uint32_t part;
  uint32_t line;
  uint32_t tokens() const { return source_tokens + target_tokens; }
};

// Consecutive records with the same length and the same part.
struct LengthGroup {
  uint32_t tokens;
  uint32_t part;
  uint64_t first_record;
  uint64_t count;
};

// File format: header | token ids (int32, in corpus order) | records sorted by (length, part) | groups.
class TokenStore {
 public:
  // Opens `path` if it was built from this corpus, tokenizer and options; otherwise builds it.
  static TokenStore open_or_build(const std::filesystem::path& path, const Corpus& corpus,
                                  const Tokenizer& tokenizer, const TokenStoreOptions& options);
  // The same for several of options.shards, in the order given: one pass over the corpus builds those that
  // are missing (above 256, several). options.shard does not count.
  static std::vector<TokenStore> open_or_build(const std::vector<TokenStoreShard>& shards,
                                               const Corpus& corpus, const Tokenizer& tokenizer,
                                               TokenStoreOptions options);
  static void build(const std::filesystem::path& path, const Corpus& corpus, const Tokenizer& tokenizer,
                    const TokenStoreOptions& options);
  // Opens the file and verifies its magic number, version, sizes and checksums.
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
  uint64_t key() const { return key_; }  // hash of corpus, tokenizer and options

 private:
  MappedFile file_;
  std::span<const int32_t> tokens_;
  std::span<const PairRecord> records_;
  std::span<const LengthGroup> groups_;
  bool is_text_;
  int64_t parts_;
  int64_t skipped_empty_, skipped_long_;
  uint64_t key_;
};

// A hash of everything that a store depends on: stores with the same key have the same contents.
uint64_t token_store_key(const Corpus& corpus, const Tokenizer& tokenizer, const TokenStoreOptions& options);

}  // namespace calque

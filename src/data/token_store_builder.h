// TokenStoreBuilder: reads a corpus once and writes some of its shards. One thread reads lines and writes
// tokens; the others split, clean and tokenise. Memory depends on the threads and shards, not on the corpus.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calque/data/ordered_workers.h"
#include "calque/data/token_store.h"
#include "calque/data/word_encoder.h"
#include "token_store_writer.h"

namespace calque {

class TokenStoreBuilder {
 public:
  // options.corpus_state must be there; options.shard does not count.
  TokenStoreBuilder(std::span<const TokenStoreShard> shards, const Corpus& corpus, const Tokenizer& tokenizer,
                    const TokenStoreOptions& options);
  ~TokenStoreBuilder();

  // Writes all files or, if it throws, none.
  void build();

 private:
  struct Block;
  struct Line;

  void read_part(uint32_t part, OrderedWorkers<Block>& workers, const std::function<void(int64_t)>& advance);
  Block read_block(uint32_t part, PairLineReader& reader) const;
  void tokenise(Block& block, WordEncoder& encoder) const;
  void tokenise_line(const SentencePair& pair, uint32_t part, Line& line, std::vector<int32_t>& ids,
                     WordEncoder& encoder) const;
  void store(const Block& block);
  void report() const;
  bool is_complete(uint32_t part) const;

  const Corpus& corpus_;
  const Tokenizer& tokenizer_;
  const TokenStoreOptions& options_;
  std::vector<std::unique_ptr<TokenStoreWriter>> writers_;
  std::vector<int64_t> numbers_;          // of the writers' shards
  std::vector<int32_t> writer_of_shard_;  // -1: another process's, or complete
  std::vector<int64_t> pairs_of_part_;    // of all shards
  std::string first_long_;
};

}  // namespace calque

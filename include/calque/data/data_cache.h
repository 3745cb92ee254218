// DataCache: trained tokenizers and tokenised corpora, stored in a folder. File names are hashes of the data
// and settings, so that the same data and settings reuse the same files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "calque/data/data_config.h"
#include "calque/data/token_store.h"
#include "calque/data/tokenizer.h"

namespace calque {

class DataCache {
 public:
  // `threads` is the number of threads for tokenising and for training tokenizers.
  DataCache(std::filesystem::path folder, int threads);

  // Loads config.path if it is set; otherwise trains a tokenizer on `train`, or reuses a cached one.
  Tokenizer tokenizer(const TokenizerConfig& config, const Corpus& train);
  TokenStore tokens(const Corpus& corpus, const Tokenizer& tokenizer, TokenStoreOptions options);
  // The same for several of options.shards: one pass over the corpus builds those that are missing.
  std::vector<TokenStore> token_shards(const Corpus& corpus, const Tokenizer& tokenizer,
                                       TokenStoreOptions options, const std::vector<int64_t>& shards);
  // Like tokens(), but in the file `path`, which is replaced if it was built from other data or settings.
  TokenStore tokens_at(const std::filesystem::path& path, const Corpus& corpus, const Tokenizer& tokenizer,
                       TokenStoreOptions options);

  uint64_t corpus_hash(const Corpus& corpus) { return state(corpus).hash; }  // each corpus is read once
  const std::filesystem::path& folder() const { return folder_; }

 private:
  const CorpusState& state(const Corpus& corpus);

  std::filesystem::path folder_;
  int threads_;
  std::map<std::string, CorpusState> states_;  // keyed by the files of a corpus
};

}  // namespace calque

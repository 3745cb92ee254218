#include "calque/data/prepared_data.h"

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/data/tokenizer_training.h"

namespace calque {
namespace fs = std::filesystem;

Tokenizer prepare_tokenizer(const TokenizerConfig& config, const Corpus& train, const fs::path& cache) {
  if (!config.path.empty()) return Tokenizer::load(config.path);
  if (train.empty()) {
    throw UserError("data.train is empty, so there is nothing to train a tokenizer from",
                    "set data.train, or tokenizer.path");
  }
  TokenizerConfig learnt = config;
  learnt.sampling = 0;  // concerns how it is used, not what it is
  const uint64_t key = mix(hash_corpus(train), hash_bytes(show_config(fields(learnt), {}, false)));
  const fs::path path = cache / fmt::format("{}.model", hex(key));
  if (fs::exists(path)) return Tokenizer::load(path);
  Tokenizer tokenizer = train_tokenizer(config, train);
  write_file(path, tokenizer.serialized());
  return tokenizer;
}

TokenStore prepare_tokens(const Corpus& corpus, const Tokenizer& tokenizer, const TokenStoreOptions& options,
                          const fs::path& cache) {
  const uint64_t key = token_store_key(corpus, tokenizer, options);
  return TokenStore::open_or_build(cache / fmt::format("{}.tokens", hex(key)), corpus, tokenizer, options);
}

}  // namespace calque

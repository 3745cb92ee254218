#include "calque/data/data_cache.h"

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "calque/base/log.h"
#include "calque/data/tokenizer_training.h"

namespace calque {
namespace fs = std::filesystem;

namespace {

// By its time, so that what is not used for long can be pruned.
void mark_used(const fs::path& path) {
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
}

// KEY-CHECKSUM.model. A damaged one is deleted, so that it is trained again.
std::optional<fs::path> find_tokenizer(const fs::path& folder, const std::string& key) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(key + "-") || !name.ends_with(".model")) continue;
    if (name == fmt::format("{}-{}.model", key, hex(hash_bytes(read_file(entry.path())))))
      return entry.path();
    log::warn("{}: damaged; the tokenizer is trained again", entry.path().string());
    fs::remove(entry.path());
    break;
  }
  return std::nullopt;
}

}  // namespace

DataCache::DataCache(fs::path folder, int threads) : folder_(std::move(folder)), threads_(threads) {}

const CorpusState& DataCache::state(const Corpus& corpus) {
  std::string key;
  for (const CorpusPart& part : corpus) {
    key += part.is_text() ? "text\n" : "pairs\n";
    for (const fs::path& file : part.files()) key += file.string() + '\n';
    key += std::to_string(part.first) + '\n';
    for (const int64_t column : part.columns) key += std::to_string(column) + '\n';
  }
  const auto found = states_.find(key);
  return found != states_.end() ? found->second : states_[key] = corpus_state(corpus);
}

Tokenizer DataCache::tokenizer(const TokenizerConfig& config, const Corpus& train) {
  if (!config.path.empty()) return Tokenizer::load(config.path);
  if (train.empty()) {
    throw UserError("data.train is empty: there is no text to train a tokenizer on",
                    "set data.train or tokenizer.path");
  }
  TokenizerConfig training_config = config;
  training_config.sampling = 0;  // affects how the tokenizer is used, not how it is trained
  const uint64_t key = mix(corpus_hash(train), hash_bytes(show_config(fields(training_config), {}, false)));
  if (const auto path = find_tokenizer(folder_, hex(key))) {
    mark_used(*path);
    return Tokenizer::load(*path);
  }
  Tokenizer tokenizer = train_tokenizer(config, train, threads_);
  const std::string model = tokenizer.serialized();
  write_file(folder_ / fmt::format("{}-{}.model", hex(key), hex(hash_bytes(model))), model);
  return tokenizer;
}

TokenStore DataCache::tokens(const Corpus& corpus, const Tokenizer& tokenizer, TokenStoreOptions options) {
  return std::move(token_shards(corpus, tokenizer, options, {options.shard}).front());
}

std::vector<TokenStore> DataCache::token_shards(const Corpus& corpus, const Tokenizer& tokenizer,
                                                TokenStoreOptions options,
                                                const std::vector<int64_t>& shards) {
  options.threads = threads_;
  options.corpus_state = state(corpus);
  std::vector<TokenStoreShard> files;
  for (const int64_t shard : shards) {
    options.shard = shard;
    const std::string key = hex(token_store_key(corpus, tokenizer, options));
    files.push_back({shard, folder_ / fmt::format("{}.tokens", key)});
    if (fs::exists(files.back().path)) mark_used(files.back().path);
  }
  return TokenStore::open_or_build(files, corpus, tokenizer, options);
}

TokenStore DataCache::tokens_at(const fs::path& path, const Corpus& corpus, const Tokenizer& tokenizer,
                                TokenStoreOptions options) {
  options.threads = threads_;
  options.corpus_state = state(corpus);
  if (fs::exists(path)) mark_used(path);
  return TokenStore::open_or_build(path, corpus, tokenizer, options);
}

}  // namespace calque

#include "calque/data/token_store.h"

#include <algorithm>
#include <cstring>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/log.h"
#include "token_store_builder.h"
#include "token_store_file.h"

namespace calque {
namespace fs = std::filesystem;
namespace {

// Each has two open files while it is built.
constexpr size_t shards_per_pass = 256;  // mutate: any number gives the same files

[[noreturn]] void damaged(const fs::path& path, const std::string& what) {
  throw UserError(fmt::format("{}: damaged token store: {}", path.string(), what),
                  "delete the file; it is rebuilt when needed");
}

// The header, or nullopt if it is missing, damaged or of another version.
std::optional<TokenStoreHeader> read_header(const fs::path& path) {
  if (!fs::is_regular_file(path) || fs::file_size(path) < sizeof(TokenStoreHeader)) return std::nullopt;
  TokenStoreHeader header;
  const MappedFile file(path);
  std::memcpy(&header, file.data(), sizeof header);
  if (header.magic != token_store_magic || header.version != token_store_version ||
      header.header_checksum != checksum(header))
    return std::nullopt;
  return header;
}

// The store at `path` if it has this key and is undamaged.
std::optional<TokenStore> open_current(const fs::path& path, uint64_t key) {
  const auto header = read_header(path);
  if (!header || header->key != key) return std::nullopt;
  try {
    TokenStore store(path);
    log::debug("{}: up to date, reused", path.string());
    return store;
  } catch (const UserError& error) {
    log::warn("{}; rebuilding it", error.what());
    return std::nullopt;
  }
}

uint64_t hash_payload(const fs::path& path) {
  Hasher hasher;
  uint64_t to_skip = sizeof(TokenStoreHeader);
  for_each_block(path, [&](std::string_view block) {
    const uint64_t skip = std::min<uint64_t>(to_skip, block.size());
    to_skip -= skip;
    hasher.add(block.substr(skip));
  });
  return hasher.value();
}

}  // namespace

uint64_t token_store_key(const Corpus& corpus, const Tokenizer& tokenizer, const TokenStoreOptions& options) {
  Hasher hasher;
  hasher.add_value(token_store_version);
  hasher.add_value(options.corpus_state ? options.corpus_state->hash : hash_corpus(corpus));
  hasher.add_value(tokenizer.hash());
  hasher.add_value(options.max_tokens);
  hasher.add_value(options.sampling);
  hasher.add_value(options.sampling > 0 ? options.sampling_seed : 0);
  if (options.shards > 1) {
    hasher.add_value(options.shard);
    hasher.add_value(options.shards);
  }
  return hasher.value();
}

void TokenStore::build(const fs::path& path, const Corpus& corpus, const Tokenizer& tokenizer,
                       const TokenStoreOptions& options) {
  TokenStoreOptions known = options;
  if (!known.corpus_state) known.corpus_state = corpus_state(corpus);
  const TokenStoreShard shard{options.shard, path};
  TokenStoreBuilder({&shard, 1}, corpus, tokenizer, known).build();
}

TokenStore TokenStore::open_or_build(const fs::path& path, const Corpus& corpus, const Tokenizer& tokenizer,
                                     const TokenStoreOptions& options) {
  return std::move(open_or_build({{options.shard, path}}, corpus, tokenizer, options).front());
}

std::vector<TokenStore> TokenStore::open_or_build(const std::vector<TokenStoreShard>& shards,
                                                  const Corpus& corpus, const Tokenizer& tokenizer,
                                                  TokenStoreOptions options) {
  if (!options.corpus_state) options.corpus_state = corpus_state(corpus);
  std::vector<std::optional<TokenStore>> found;
  std::vector<TokenStoreShard> missing;
  for (const TokenStoreShard& shard : shards) {
    options.shard = shard.number;
    found.push_back(open_current(shard.path, token_store_key(corpus, tokenizer, options)));
    if (!found.back()) missing.push_back(shard);
  }
  for (size_t begin = 0; begin < missing.size(); begin += shards_per_pass) {
    const size_t count = std::min(shards_per_pass, missing.size() - begin);
    TokenStoreBuilder(std::span(missing).subspan(begin, count), corpus, tokenizer, options).build();
  }
  std::vector<TokenStore> stores;
  for (size_t i = 0; i < shards.size(); ++i)
    stores.push_back(found[i] ? std::move(*found[i]) : TokenStore(shards[i].path));
  return stores;
}

TokenStore::TokenStore(const fs::path& path) : file_(path) {
  const auto header = read_header(path);
  if (!header) damaged(path, "no valid header");
  // Counts larger than the file could overflow the offsets computed below.
  if (std::max({header->tokens, header->records, header->groups}) > file_.size())
    damaged(path, "the counts in the header are too large");
  const uint64_t records_at = padded(sizeof(TokenStoreHeader) + header->tokens * sizeof(int32_t));
  const uint64_t groups_at = records_at + header->records * sizeof(PairRecord);
  if (groups_at + header->groups * sizeof(LengthGroup) != file_.size()) {
    damaged(path, "the file size does not match the header");
  }
  if (hash_payload(path) != header->payload_checksum) damaged(path, "the checksum does not match the header");
  const char* base = file_.data();
  tokens_ = {reinterpret_cast<const int32_t*>(base + sizeof(TokenStoreHeader)), header->tokens};
  records_ = {reinterpret_cast<const PairRecord*>(base + records_at), header->records};
  groups_ = {reinterpret_cast<const LengthGroup*>(base + groups_at), header->groups};
  is_text_ = header->is_text != 0;
  parts_ = static_cast<int64_t>(header->parts);
  skipped_empty_ = static_cast<int64_t>(header->skipped_empty);
  skipped_long_ = static_cast<int64_t>(header->skipped_long);
  key_ = header->key;
}

std::span<const int32_t> TokenStore::source(int64_t index) const {
  const PairRecord& record = records_[index];
  return tokens_.subspan(record.first_token, record.source_tokens);
}

std::span<const int32_t> TokenStore::target(int64_t index) const {
  const PairRecord& record = records_[index];
  return tokens_.subspan(record.first_token + record.source_tokens, record.target_tokens);
}

}  // namespace calque

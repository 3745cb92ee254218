#include "calque/data/token_store.h"

#include <array>
#include <cstring>
#include <map>
#include <thread>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/base/unicode.h"
#include "calque/base/units.h"

namespace calque {
namespace fs = std::filesystem;
namespace {

constexpr std::array<char, 8> magic = {'c', 'a', 'l', 'q', 'u', 'e', 'T', 'S'};
constexpr uint32_t version = 2;
constexpr size_t block_pairs = 8192;         // mutate: memory only; pairs per block, which the threads share
constexpr size_t records_at_once = 1 << 14;  // mutate: memory only; records per read in sort_records()

struct Header {
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
static_assert(sizeof(Header) == 88 && sizeof(PairRecord) == 24 && sizeof(LengthGroup) == 24);

uint64_t checksum(const Header& header) {
  return hash_bytes({reinterpret_cast<const char*>(&header), offsetof(Header, header_checksum)});
}

uint64_t padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

struct RawPair {
  std::string source, target;
  uint32_t line;
};

struct TokenisedPair {
  std::vector<int32_t> source, target;
};

class Builder {
 public:
  Builder(const fs::path& path, const Corpus& corpus, const Tokenizer& tokenizer,
          const TokenStoreOptions& options)
      : corpus_(corpus),
        tokenizer_(tokenizer),
        options_(options),
        key_(token_store_key(corpus, tokenizer,
                             options)),  // before reading, so that changes during the build are detected
        file_(path),
        unsorted_(path.string() + ".records") {}

  void build() {
    Header header{};
    file_.write(&header, sizeof header);  // written again at the end, with its sums
    tokenise();
    const uint64_t token_count = (file_.size() - sizeof header) / sizeof(int32_t);
    const uint64_t padding = padded(file_.size()) - file_.size();
    append(std::array<char, 8>{}.data(), padding);
    const std::vector<LengthGroup> groups = sort_records();
    append(groups.data(), groups.size() * sizeof(LengthGroup));
    header = {magic,         version,        is_text(corpus_), key_,          token_count,      record_count_,
              groups.size(), corpus_.size(), skipped_empty_,   skipped_long_, payload_.value(), 0};
    header.header_checksum = checksum(header);
    file_.write_at(0, &header, sizeof header);
    file_.commit();
  }

 private:
  void append(const void* bytes, size_t size) {
    file_.write(bytes, size);
    payload_.add(bytes, size);
  }

  void tokenise() {
    const std::string label =
        "tokenising " + corpus_.front().main_file().filename().string();  // mutate: display only
    Progress progress(label, corpus_bytes(corpus_), "bytes");
    for (uint32_t part = 0; part < corpus_.size(); ++part) {
      PairReader reader(corpus_[part]);
      std::vector<RawPair> block;
      int64_t reported_bytes = 0;  // mutate: display only
      SentencePair pair;
      for (bool more = true; more;) {
        block.clear();
        while (block.size() < block_pairs && (more = reader.next(pair))) {
          if (pair.line % options_.shards != options_.shard) continue;
          block.push_back(
              {clean_text(pair.source), clean_text(pair.target), static_cast<uint32_t>(pair.line)});
        }
        store_block(part, block);
        progress.advance(reader.bytes_read() - reported_bytes);  // mutate: display only
        reported_bytes = reader.bytes_read();                    // mutate: display only
      }
      if (options_.shard == 0) skipped_empty_ += reader.skipped_empty();  // of all shards
    }
    const auto pairs = [](uint64_t count) {
      return format_count(static_cast<int64_t>(count)) + (count == 1 ? " pair" : " pairs");
    };
    if (skipped_empty_ > 0) log::warn("{}: skipped {} with an empty side", name(), pairs(skipped_empty_));
    if (skipped_long_ > 0) {
      log::warn("skipped {} longer than data.max_tokens={}; the first is {}", pairs(skipped_long_),
                options_.max_tokens, first_long_);
    }
    if (record_count_ == 0)
      throw UserError(fmt::format("{}: no usable pairs", name()),
                      "`calque data check CONFIG` lists the problems");
  }

  std::string name() const { return corpus_.front().main_file().string(); }

  void store_block(uint32_t part, const std::vector<RawPair>& block) {
    std::vector<TokenisedPair> tokenised(block.size());
    const size_t threads = std::max(1, options_.threads);
    std::vector<std::exception_ptr> failures(threads);
    std::vector<std::jthread> workers;
    for (size_t worker = 0; worker < threads; ++worker) {
      workers.emplace_back([&, worker] {
        try {
          for (size_t i = worker; i < block.size(); i += threads) {
            const uint64_t seed = mix(options_.sampling_seed, part, block[i].line);
            tokenised[i].source = encode(block[i].source, mix(seed, 0));
            tokenised[i].target = encode(block[i].target, mix(seed, 1));
          }
        } catch (...) {
          failures[worker] = std::current_exception();
        }
      });
    }
    workers.clear();  // joins
    for (const auto& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }

    std::vector<int32_t> ids;
    std::vector<PairRecord> records;
    uint64_t first = (file_.size() - sizeof(Header)) / sizeof(int32_t);
    for (size_t i = 0; i < block.size(); ++i) {
      const auto& [source, target] = tokenised[i];
      const PairRecord record{first, static_cast<uint32_t>(source.size()),
                              static_cast<uint32_t>(target.size()), part, block[i].line};
      if (record.tokens() > options_.max_tokens) {
        if (skipped_long_++ == 0) {
          first_long_ = fmt::format("{}:{} ({} tokens)", corpus_[part].main_file().string(), record.line,
                                    record.tokens());
        }
        continue;
      }
      if (target.empty() || (source.empty() && !corpus_[part].is_text())) {  // empty after normalisation
        ++skipped_empty_;
        continue;
      }
      ids.insert(ids.end(), source.begin(), source.end());
      ids.insert(ids.end(), target.begin(), target.end());
      first += record.tokens();
      records.push_back(record);
      ++counts_[{record.tokens(), part}];
    }
    append(ids.data(), ids.size() * sizeof(int32_t));
    unsorted_.write(records.data(), records.size() * sizeof(PairRecord));
    record_count_ += records.size();
  }

  std::vector<int32_t> encode(const std::string& text, uint64_t seed) const {
    if (text.empty()) return {};
    return options_.sampling > 0 ? tokenizer_.encode_sampled(text, options_.sampling, seed)
                                 : tokenizer_.encode(text);
  }

  // A counting sort from the temporary file to the final one. Each group writes through a small buffer, so
  // that memory depends on the number of groups, not on the number of pairs.
  std::vector<LengthGroup> sort_records() {
    const uint64_t begin = file_.size();
    struct Target {
      uint64_t offset;
      std::vector<PairRecord> buffer;
    };
    std::vector<LengthGroup> groups;
    std::map<std::pair<uint32_t, uint32_t>, Target> targets;
    uint64_t placed = 0;
    for (const auto& [length_and_part, count] : counts_) {
      groups.push_back({length_and_part.first, length_and_part.second, placed, count});
      targets[length_and_part].offset = begin + placed * sizeof(PairRecord);
      placed += count;
    }
    const auto flush = [&](Target& target) {
      file_.write_at(target.offset, target.buffer.data(), target.buffer.size() * sizeof(PairRecord));
      target.offset += target.buffer.size() * sizeof(PairRecord);
      target.buffer.clear();
    };
    std::vector<PairRecord> chunk(records_at_once);
    for (uint64_t at = 0; at < record_count_;) {
      const size_t count = std::min<uint64_t>(records_at_once, record_count_ - at);
      unsorted_.read_at(at * sizeof(PairRecord), chunk.data(), count * sizeof(PairRecord));
      for (size_t i = 0; i < count; ++i) {
        Target& target = targets[{chunk[i].tokens(), chunk[i].part}];
        target.buffer.push_back(chunk[i]);
        if (target.buffer.size() == 128) flush(target);  // mutate: memory only
      }
      at += count;
    }
    for (auto& [key, target] : targets) flush(target);
    for (uint64_t at = 0; at < record_count_;) {  // read back in the final order, for the checksum
      const size_t count = std::min<uint64_t>(records_at_once, record_count_ - at);
      file_.read_at(begin + at * sizeof(PairRecord), chunk.data(), count * sizeof(PairRecord));
      payload_.add(chunk.data(), count * sizeof(PairRecord));
      at += count;
    }
    return groups;
  }

  const Corpus& corpus_;
  const Tokenizer& tokenizer_;
  const TokenStoreOptions& options_;
  uint64_t key_;
  AtomicFile file_;
  AtomicFile unsorted_;  // records in corpus order; never committed, so it is deleted
  Hasher payload_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts_;  // (length, part) → number of pairs
  uint64_t record_count_ = 0;
  uint64_t skipped_empty_ = 0;
  uint64_t skipped_long_ = 0;
  std::string first_long_;
};

[[noreturn]] void damaged(const fs::path& path, const std::string& what) {
  throw UserError(fmt::format("{}: damaged token store: {}", path.string(), what),
                  "delete the file; it is rebuilt when needed");
}

// The header, or nullopt if it is missing, damaged or of another version.
std::optional<Header> read_header(const fs::path& path) {
  if (!fs::is_regular_file(path) || fs::file_size(path) < sizeof(Header)) return std::nullopt;
  Header header;
  const MappedFile file(path);
  std::memcpy(&header, file.data(), sizeof header);
  if (header.magic != magic || header.version != version || header.header_checksum != checksum(header))
    return std::nullopt;
  return header;
}

uint64_t hash_payload(const fs::path& path) {
  Hasher hasher;
  uint64_t to_skip = sizeof(Header);
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
  hasher.add_value(version);
  hasher.add_value(options.corpus_hash ? *options.corpus_hash : hash_corpus(corpus));
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
  Builder(path, corpus, tokenizer, options).build();
}

TokenStore TokenStore::open_or_build(const fs::path& path, const Corpus& corpus, const Tokenizer& tokenizer,
                                     const TokenStoreOptions& options) {
  const auto header = read_header(path);
  if (header && header->key == token_store_key(corpus, tokenizer, options)) {
    try {
      TokenStore store(path);
      log::debug("{}: up to date, reused", path.string());
      return store;
    } catch (const UserError& error) {
      log::warn("{}; rebuilding it", error.what());
    }
  }
  build(path, corpus, tokenizer, options);
  TokenStore store(path);
  TokenStoreOptions afterwards = options;
  afterwards.corpus_hash.reset();
  if (store.key() != token_store_key(corpus, tokenizer, afterwards)) {
    throw UserError(fmt::format("{}: the corpus or this file changed while the corpus was being tokenised",
                                path.string()),
                    "run the command again");
  }
  return store;
}

TokenStore::TokenStore(const fs::path& path) : file_(path) {
  const auto header = read_header(path);
  if (!header) damaged(path, "no valid header");
  // Counts larger than the file could overflow the offsets computed below.
  if (std::max({header->tokens, header->records, header->groups}) > file_.size())
    damaged(path, "the counts in the header are too large");
  const uint64_t records_at = padded(sizeof(Header) + header->tokens * sizeof(int32_t));
  const uint64_t groups_at = records_at + header->records * sizeof(PairRecord);
  if (groups_at + header->groups * sizeof(LengthGroup) != file_.size()) {
    damaged(path, "the file size does not match the header");
  }
  if (hash_payload(path) != header->payload_checksum) damaged(path, "the checksum does not match the header");
  const char* base = file_.data();
  tokens_ = {reinterpret_cast<const int32_t*>(base + sizeof(Header)), header->tokens};
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

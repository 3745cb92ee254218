#include "token_store_builder.h"

#include <algorithm>
#include <exception>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/base/unicode.h"
#include "calque/base/units.h"

namespace calque {
namespace {

// mutate: memory and speed only; a block is what a thread works on at a time
constexpr size_t most_block_bytes = 1 << 18;
constexpr int64_t most_block_lines = 4096;

}  // namespace

struct TokenStoreBuilder::Line {
  int32_t writer;  // -1: a pair of another shard
  uint32_t source_tokens = 0;
  uint32_t target_tokens = 0;
  bool is_pair = true;  // false: blank, or with an empty side
};

struct TokenStoreBuilder::Block {
  uint32_t part = 0;
  int64_t first_line = 1;
  int64_t count = 0;  // of lines
  std::string text;   // each line, and with two files the target's after the source's, ended by a line feed
  std::vector<Line> lines = {};
  std::vector<int32_t> ids = {};    // of the lines that have a writer
  std::exception_ptr failure = {};  // of the line after these
};

TokenStoreBuilder::TokenStoreBuilder(std::span<const TokenStoreShard> shards, const Corpus& corpus,
                                     const Tokenizer& tokenizer, const TokenStoreOptions& options)
    : corpus_(corpus),
      tokenizer_(tokenizer),
      options_(options),
      writer_of_shard_(static_cast<size_t>(options.shards), -1),
      pairs_of_part_(corpus.size()) {
  TokenStoreOptions of_shard = options;
  for (const TokenStoreShard& shard : shards) {
    of_shard.shard = shard.number;
    writer_of_shard_.at(static_cast<size_t>(shard.number)) = static_cast<int32_t>(writers_.size());
    writers_.push_back(
        std::make_unique<TokenStoreWriter>(shard.path, token_store_key(corpus, tokenizer, of_shard)));
    numbers_.push_back(shard.number);
  }
}

TokenStoreBuilder::~TokenStoreBuilder() = default;

void TokenStoreBuilder::build() {
  const auto threads = static_cast<size_t>(std::max(1, options_.threads));
  {
    const std::string label =
        "tokenising " + corpus_.front().main_file().filename().string();  // mutate: display only
    Progress progress(label, corpus_bytes(corpus_), "bytes");
    std::vector<WordEncoder> encoders(threads, WordEncoder(tokenizer_));
    OrderedWorkers<Block> workers(threads,
                                  [&](Block& block, size_t worker) { tokenise(block, encoders[worker]); });
    for (uint32_t part = 0; part < corpus_.size(); ++part)
      read_part(part, workers, [&](int64_t bytes) { progress.advance(bytes); });
    while (workers.size() > 0) store(workers.take());
  }
  report();
  if (has_changed(corpus_, *options_.corpus_state)) {
    throw UserError(
        fmt::format("{}: changed while the corpus was being tokenised", corpus_.front().main_file().string()),
        "run the command again");
  }
  OrderedWorkers<TokenStoreWriter*> workers(
      std::min(threads, writers_.size()),
      [&](TokenStoreWriter* writer, size_t) { writer->commit(is_text(corpus_), corpus_.size()); });
  for (const auto& writer : writers_) workers.submit(writer.get());
  while (workers.size() > 0) workers.take();
}

// With a limit on its pairs, a part may end while blocks beyond it are being read and tokenised.
bool TokenStoreBuilder::is_complete(uint32_t part) const {
  return corpus_[part].first > 0 && pairs_of_part_[part] >= corpus_[part].first;
}

void TokenStoreBuilder::read_part(uint32_t part, OrderedWorkers<Block>& workers,
                                  const std::function<void(int64_t)>& advance) {
  const size_t ahead = 2 * static_cast<size_t>(std::max(1, options_.threads)) + 1;  // mutate: memory only
  PairLineReader reader(corpus_[part]);
  int64_t reported_bytes = 0;  // mutate: display only
  for (bool more = true; more && !is_complete(part);) {
    Block block = read_block(part, reader);
    more = block.count > 0 && !block.failure;
    workers.submit(std::move(block));
    if (workers.size() > ahead) store(workers.take());
    advance(reader.bytes_read() - reported_bytes);  // mutate: display only
    reported_bytes = reader.bytes_read();           // mutate: display only
  }
}

TokenStoreBuilder::Block TokenStoreBuilder::read_block(uint32_t part, PairLineReader& reader) const {
  Block block;
  block.part = part;
  block.first_line = reader.line_number() + 1;
  std::string_view first, second;
  try {
    while (block.count < most_block_lines && block.text.size() < most_block_bytes &&
           reader.next(first, second)) {
      block.text.append(first) += '\n';
      if (!corpus_[part].target.empty()) block.text.append(second) += '\n';
      ++block.count;
    }
  } catch (...) {
    block.failure = std::current_exception();  // thrown in store(), after the errors of earlier lines
  }
  return block;
}

void TokenStoreBuilder::tokenise(Block& block, WordEncoder& encoder) const {
  const CorpusPart& part = corpus_[block.part];
  const std::string_view text = block.text;
  size_t at = 0;
  const auto next = [&] {
    const size_t begin = at;
    at = text.find('\n', begin) + 1;
    return text.substr(begin, at - 1 - begin);
  };
  try {
    for (int64_t i = 0; i < block.count; ++i) {
      const std::string_view first = next();
      const std::string_view second = part.target.empty() ? std::string_view() : next();
      SentencePair pair;
      const int64_t number = block.first_line + i;
      Line line{writer_of_shard_[static_cast<size_t>(number % options_.shards)]};
      line.is_pair = parse_pair(part, number, first, second, pair);
      if (line.is_pair && line.writer >= 0) tokenise_line(pair, block.part, line, block.ids, encoder);
      block.lines.push_back(line);
    }
  } catch (...) {
    block.failure = std::current_exception();
  }
}

void TokenStoreBuilder::tokenise_line(const SentencePair& pair, uint32_t part, Line& line,
                                      std::vector<int32_t>& ids, WordEncoder& encoder) const {
  const uint64_t seed = mix(options_.sampling_seed, part, static_cast<uint64_t>(pair.line));
  const auto encode = [&](std::string_view raw, uint64_t own_seed) {
    const std::string text = clean_text(raw);
    const size_t before = ids.size();
    if (options_.sampling > 0 && !text.empty()) {
      const auto sampled = tokenizer_.encode_sampled(text, options_.sampling, own_seed);
      ids.insert(ids.end(), sampled.begin(), sampled.end());
    } else if (!text.empty()) {
      encoder.encode(text, ids);
    }
    return static_cast<uint32_t>(ids.size() - before);
  };
  line.source_tokens = encode(pair.source, mix(seed, 0));
  line.target_tokens = encode(pair.target, mix(seed, 1));
}

void TokenStoreBuilder::store(const Block& block) {
  const int32_t first_shard = writer_of_shard_.front();  // counts the blank lines of all
  size_t at = 0;
  for (size_t i = 0; i < block.lines.size(); ++i) {
    if (is_complete(block.part)) return;
    const Line& line = block.lines[i];
    if (!line.is_pair) {
      if (first_shard >= 0) ++writers_[static_cast<size_t>(first_shard)]->skipped_empty;
      continue;
    }
    ++pairs_of_part_[block.part];
    if (line.writer < 0) continue;
    TokenStoreWriter& writer = *writers_[static_cast<size_t>(line.writer)];
    const uint32_t tokens = line.source_tokens + line.target_tokens;
    const auto number = static_cast<uint32_t>(block.first_line + static_cast<int64_t>(i));
    const bool has_source = line.source_tokens > 0 || corpus_[block.part].is_text();
    if (tokens > options_.max_tokens) {
      ++writer.skipped_long;
      if (first_long_.empty()) {
        first_long_ =
            fmt::format("{}:{} ({} tokens)", corpus_[block.part].main_file().string(), number, tokens);
      }
    } else if (line.target_tokens == 0 || !has_source) {  // empty after normalisation
      ++writer.skipped_empty;
    } else {
      writer.add(block.part, number, line.source_tokens, std::span(block.ids).subspan(at, tokens));
    }
    at += tokens;
  }
  if (block.failure && !is_complete(block.part)) std::rethrow_exception(block.failure);
}

// Warns of what was skipped, in all shards, and refuses shards without pairs.
void TokenStoreBuilder::report() const {
  const std::string name = corpus_.front().main_file().string();
  uint64_t empty = 0, too_long = 0, stored = 0;
  for (const auto& writer : writers_) {
    empty += writer->skipped_empty;
    too_long += writer->skipped_long;
    stored += writer->pairs();
  }
  const auto pairs = [](uint64_t count) {
    return format_count(static_cast<int64_t>(count)) + (count == 1 ? " pair" : " pairs");
  };
  if (empty > 0) log::warn("{}: skipped {} with an empty side", name, pairs(empty));
  if (too_long > 0) {
    log::warn("skipped {} longer than data.max_tokens={}; the first is {}", pairs(too_long),
              options_.max_tokens, first_long_);
  }
  for (size_t i = 0; i < writers_.size(); ++i) {
    if (writers_[i]->pairs() > 0) continue;
    if (stored == 0 && options_.shards == 1)
      throw UserError(fmt::format("{}: no usable pairs", name),
                      "`calque data check CONFIG` lists the problems");
    throw UserError(
        fmt::format("{}: no usable pairs in shard {} of {}", name, numbers_[i] + 1, options_.shards),
        "set a smaller data.shards; `calque data check CONFIG` lists problems of the corpus");
  }
}

}  // namespace calque

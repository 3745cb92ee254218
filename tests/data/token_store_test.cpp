#include "calque/data/token_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/log.h"
#include "data/small_corpus.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::map<std::pair<uint32_t, uint32_t>, std::string> by_line(const TokenStore& store) {
  std::map<std::pair<uint32_t, uint32_t>, std::string> all;
  for (int64_t i = 0; i < store.pairs(); ++i) {
    const PairRecord& record = store.record(i);
    all[{record.part, record.line}] =
        small_tokenizer().decode(store.source(i)) + "\t" + small_tokenizer().decode(store.target(i));
  }
  return all;
}

}  // namespace

TEST(TokenStore, HoldsEveryPairSortedByLength) {
  const TemporaryFolder folder;
  const std::string content = small_tsv(500);
  const Corpus corpus = {tsv_part(folder.write("a.tsv", content))};
  TokenStore::build(folder / "s.tokens", corpus, small_tokenizer(), {});
  const TokenStore store(folder / "s.tokens");
  ASSERT_EQ(store.pairs(), 500);
  std::string rebuilt;
  for (const auto& [where, text] : by_line(store)) rebuilt += text + "\n";
  EXPECT_EQ(rebuilt, content);
  uint64_t in_groups = 0;
  for (const LengthGroup& group : store.groups()) {
    EXPECT_EQ(group.first_record, in_groups);
    for (uint64_t i = 0; i < group.count; ++i)
      EXPECT_EQ(store.record(group.first_record + i).tokens(), group.tokens);
    in_groups += group.count;
  }
  EXPECT_EQ(in_groups, 500u);
}

// As a translated line is, whatever the tokenizer itself normalises: byte-level BPE normalises nothing.
TEST(TokenStore, TextIsCleanedAsForTranslating) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = Tokenizer::load(source_folder() / "tests/golden/tokenizer/byte-level.json");
  const Corpus corpus = {tsv_part(folder.write("a.tsv", "Quoi\u00a0?  Oui\tWhat?\u2009 Yes\n"))};
  TokenStore::build(folder / "s.tokens", corpus, tokenizer, {});
  const TokenStore store(folder / "s.tokens");
  ASSERT_EQ(store.pairs(), 1);
  const auto ids = [](std::span<const int32_t> of) { return std::vector<int32_t>(of.begin(), of.end()); };
  EXPECT_EQ(ids(store.source(0)), tokenizer.encode("Quoi ? Oui"));
  EXPECT_EQ(ids(store.target(0)), tokenizer.encode("What? Yes"));
  EXPECT_NE(tokenizer.encode("Quoi\u00a0?  Oui"), tokenizer.encode("Quoi ? Oui"));
}

TEST(TokenStore, TheNumberOfThreadsDoesNotChangeTheFile) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(folder.write("a.tsv", small_tsv(300))),
                         tsv_part(folder.write("b.tsv", small_tsv(50)))};
  TokenStoreOptions options;
  options.sampling = 0.2;
  options.threads = 1;
  TokenStore::build(folder / "1", corpus, small_tokenizer(), options);
  options.threads = 3;
  TokenStore::build(folder / "3", corpus, small_tokenizer(), options);
  EXPECT_EQ(read_file(folder / "1"), read_file(folder / "3"));
}

TEST(TokenStore, IsReusedUntilSomethingChanges) {
  const TemporaryFolder folder;
  const auto corpus_file = folder.write("a.tsv", small_tsv(20));
  const Corpus corpus = {tsv_part(corpus_file)};
  TokenStoreOptions options;
  const auto path = folder / "s.tokens";
  const auto open = [&] {
    const TokenStore store = TokenStore::open_or_build(path, corpus, small_tokenizer(), options);
    struct stat status {};
    stat(path.c_str(), &status);
    return status.st_ino;
  };
  const auto first = open();
  EXPECT_EQ(open(), first);
  options.max_tokens = 200;
  const auto limited = open();
  EXPECT_NE(limited, first);
  folder.write("a.tsv", small_tsv(21));
  EXPECT_NE(open(), limited);
  EXPECT_EQ(TokenStore(path).pairs(), 21);
}

TEST(TokenStore, SkipsAndCountsPairsThatAreTooLong) {
  const TemporaryFolder folder;
  std::string lengthy;
  for (int i = 0; i < 100; ++i) lengthy += " pomme";
  const Corpus corpus = {tsv_part(folder.write("a.tsv", "un\tone\n" + lengthy + "\tapple\n\tempty\n"))};
  TokenStoreOptions options;
  options.max_tokens = 50;
  const TokenStore store = TokenStore::open_or_build(folder / "s", corpus, small_tokenizer(), options);
  EXPECT_EQ(store.pairs(), 1);
  EXPECT_EQ(store.skipped_long(), 1);
  EXPECT_EQ(store.skipped_empty(), 1);
}

TEST(TokenStore, AnUnusableCorpusIsAnErrorAndLeavesNoFile) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(folder.write("a.tsv", "\n\n"))};
  EXPECT_THROW(TokenStore::build(folder / "s", corpus, small_tokenizer(), {}), UserError);
  const Corpus broken = {tsv_part(folder.write("b.tsv", small_tsv(10) + "no tab\n"))};
  EXPECT_THROW(TokenStore::build(folder / "s", broken, small_tokenizer(), {}), UserError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
}

TEST(TokenStore, DetectsDamageAndRebuildsTheFile) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(folder.write("a.tsv", small_tsv(50)))};
  const auto path = folder / "s";
  TokenStore::build(path, corpus, small_tokenizer(), {});
  const std::string good = read_file(path);
  for (size_t at = 0; at < good.size(); at += 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    folder.write("bad", bad);
    EXPECT_THROW(TokenStore(folder / "bad"), UserError) << "byte " << at;
  }
  for (const size_t size : {size_t{0}, size_t{10}, size_t{88}, good.size() - 1}) {
    folder.write("bad", good.substr(0, size));
    EXPECT_THROW(TokenStore(folder / "bad"), UserError) << size;
  }
  folder.write("s", good.substr(0, good.size() - 8));
  EXPECT_EQ(TokenStore::open_or_build(path, corpus, small_tokenizer(), {}).pairs(), 50);
  EXPECT_EQ(read_file(path), good);
}

TEST(TokenStore, SamplingChangesTheSegmentationNotTheText) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(folder.write("a.tsv", small_tsv(100)))};
  TokenStoreOptions options;
  options.sampling = 0.3;
  options.sampling_seed = 1;
  const TokenStore one = TokenStore::open_or_build(folder / "1", corpus, small_tokenizer(), options);
  options.sampling_seed = 2;
  const TokenStore two = TokenStore::open_or_build(folder / "2", corpus, small_tokenizer(), options);
  EXPECT_EQ(by_line(one), by_line(two));
  EXPECT_NE(one.tokens(), two.tokens());
}

// In several blocks, and more records than are sorted at once.
TEST(TokenStore, HoldsTensOfThousandsOfPairs) {
  const TemporaryFolder folder;
  std::string first, second;
  for (int i = 0; i < 17'000; ++i)
    first += (i % 3 == 0 ? "le chat\tthe " : "le\tthe ") + std::to_string(i % 10) + "\n";
  for (int i = 0; i < 9'000; ++i) second += "la maison\tm\n";
  const Corpus corpus = {tsv_part(folder.write("a.tsv", first)), tsv_part(folder.write("b.tsv", second))};
  TokenStore::build(folder / "s", corpus, small_tokenizer(), {});
  const TokenStore store(folder / "s");
  ASSERT_EQ(store.pairs(), 26'000);
  EXPECT_EQ(store.parts(), 2);
  std::string rebuilt[2];
  for (const auto& [where, text] : by_line(store)) rebuilt[where.first] += text + "\n";
  EXPECT_EQ(rebuilt[0], first);
  EXPECT_EQ(rebuilt[1], second);
  int64_t tokens = 0;
  for (int64_t i = 0; i < store.pairs(); ++i) tokens += store.record(i).tokens();
  EXPECT_EQ(store.tokens(), tokens);
}

TEST(TokenStore, EachSentenceIsSampledByItself) {
  const TemporaryFolder folder;
  std::string tsv;
  for (int i = 0; i < 40; ++i) tsv += "le chat mange une pomme\tle chat mange une pomme\n";
  TokenStoreOptions options;
  options.sampling = 0.5;
  const auto file = folder.write("a.tsv", tsv);
  const Corpus corpus = {tsv_part(file), tsv_part(file)};
  const TokenStore store = TokenStore::open_or_build(folder / "s", corpus, small_tokenizer(), options);
  std::set<std::vector<int32_t>> sources;
  std::map<uint32_t, std::vector<int32_t>> first_part;  // by line
  int64_t other_target = 0, other_part = 0;
  const auto ids = [](std::span<const int32_t> of) { return std::vector<int32_t>(of.begin(), of.end()); };
  for (int64_t i = 0; i < store.pairs(); ++i) {
    sources.insert(ids(store.source(i)));
    other_target += ids(store.source(i)) != ids(store.target(i));
    if (store.record(i).part == 0) first_part[store.record(i).line] = ids(store.source(i));
  }
  for (int64_t i = 0; i < store.pairs(); ++i)
    other_part += store.record(i).part == 1 && first_part[store.record(i).line] != ids(store.source(i));
  EXPECT_GT(sources.size(), 60U);
  EXPECT_GT(other_target, 70);
  EXPECT_GT(other_part, 35);
}

TEST(TokenStore, TheLimitCountsTheTokensOfBothSides) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(folder.write("a.tsv", "le chat mange\tthe cat eats\nun\tone\n"))};
  TokenStoreOptions options;
  options.max_tokens = std::ssize(small_tokenizer().encode("le chat mange")) +
                       std::ssize(small_tokenizer().encode("the cat eats"));
  EXPECT_EQ(TokenStore::open_or_build(folder / "a", corpus, small_tokenizer(), options).pairs(), 2);
  --options.max_tokens;
  EXPECT_EQ(TokenStore::open_or_build(folder / "b", corpus, small_tokenizer(), options).pairs(), 1);
  options.max_tokens = 1;
  EXPECT_THAT([&] { TokenStore::build(folder / "c", corpus, small_tokenizer(), options); },
              testing::ThrowsMessage<UserError>(HasSubstr("no usable pairs")));
}

TEST(TokenStore, SentencesThatCleaningEmptiesAreSkippedAndAllIsLogged) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(
      folder.write("a.tsv", "\x01\tone\nun\t\x01\nle chat mange une pomme\tthe cat eats\nun\tone\n\t\n"))};
  TokenStoreOptions options;
  options.max_tokens = 8;
  log::start_file(folder / "log.txt");
  const TokenStore store = TokenStore::open_or_build(folder / "s", corpus, small_tokenizer(), options);
  log::stop_file();
  EXPECT_EQ(store.pairs(), 1);
  EXPECT_EQ(store.skipped_empty(), 3);
  EXPECT_EQ(store.skipped_long(), 1);
  const std::string logged = read_file(folder / "log.txt");
  EXPECT_THAT(logged, HasSubstr("skipped 3 pairs with an empty side"));
  EXPECT_THAT(logged, HasSubstr("skipped 1 pair longer than data.max_tokens=8; the first is " +
                                (folder / "a.tsv").string() + ":3 ("));
  log::start_file(folder / "quiet.txt");
  const Corpus good = {tsv_part(folder.write("b.tsv", "un\tone\n"))};
  TokenStore::build(folder / "t", good, small_tokenizer(), {});
  log::stop_file();
  EXPECT_EQ(read_file(folder / "quiet.txt"), "");
  CorpusPart text;
  text.text = folder.write("a.txt", "\x01\nun\n");
  EXPECT_EQ(TokenStore::open_or_build(folder / "u", {text}, small_tokenizer(), {}).skipped_empty(), 1);
}

TEST(TokenStore, AnErrorOfAThreadEndsTheBuild) {
  const TemporaryFolder folder;
  const auto contradictory =
      Tokenizer::load(source_folder() / "tests/fuzz/findings/tokenizer/sentencepiece-unconsumed");
  const Corpus corpus = {tsv_part(folder.write("a.tsv", "L'élève a lu 12 pages\tone\n"))};
  EXPECT_THROW(TokenStore::build(folder / "s", corpus, contradictory, {}), UserError);
}

// A store that is built from other data, options or by another version of the format is built again.
TEST(TokenStore, TheKeyKnowsEverythingAStoreDependsOn) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(folder.write("a.tsv", "un\tone\n"))};
  const Tokenizer golden = Tokenizer::load(source_folder() / "tests/golden/tokenizer/bpe.model");
  TokenStoreOptions options;
  const auto key = [&] { return token_store_key(corpus, golden, options); };
  // Of version 3 of the format. Another key would make all stores be built again.
  EXPECT_EQ(hex(key()), "702926de2b618b3d");
  std::set<uint64_t> keys = {key(), token_store_key(corpus, small_tokenizer(), options)};
  options.sampling_seed = 1;  // does not matter without sampling
  EXPECT_TRUE(keys.contains(key()));
  options.max_tokens = 255;
  keys.insert(key());
  options.sampling = 0.1;
  keys.insert(key());
  options.sampling_seed = 2;
  keys.insert(key());
  options.corpus_state = CorpusState{7, 0};
  keys.insert(key());
  EXPECT_EQ(keys.size(), 6U);
  const TokenStoreOptions defaults;
  EXPECT_EQ(defaults.max_tokens, 256);
  EXPECT_EQ(defaults.sampling, 0);
  EXPECT_EQ(defaults.sampling_seed, 0U);
  // A hash that is not the corpus' own: it changed between hashing and tokenising.
  EXPECT_THAT([&] { TokenStore::open_or_build(folder / "s", corpus, golden, options); },
              testing::ThrowsMessage<UserError>(HasSubstr("changed while the corpus was being tokenised")));
}

TEST(TokenStore, AHeaderThatContradictsTheFileIsNamed) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(folder.write("a.tsv", small_tsv(50)))};
  TokenStore::build(folder / "s", corpus, small_tokenizer(), {});
  const std::string good = read_file(folder / "s");
  // The header: magic, version, is_text; from byte 16 on key, tokens, records, groups, parts, skipped_empty,
  // skipped_long, the payload's checksum and its own.
  const auto refusal = [&](size_t at, auto value) -> std::string {
    std::string bad = good;
    std::memcpy(bad.data() + at, &value, sizeof value);
    const uint64_t checksum = hash_bytes(std::string_view(bad).substr(0, 80));
    std::memcpy(bad.data() + 80, &checksum, 8);
    folder.write("bad", bad);
    try {
      TokenStore(folder / "bad");
    } catch (const UserError& error) {
      return std::string(error.what()).substr((folder / "bad").string().size());
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(16, uint64_t{5}), "accepted");
  const std::string damaged = ": damaged token store: ";
  EXPECT_EQ(refusal(0, 'C'), damaged + "no valid header");
  EXPECT_EQ(refusal(8, uint32_t{1}), damaged + "no valid header");
  EXPECT_EQ(refusal(8, uint32_t{4}), damaged + "no valid header");
  for (const size_t count : {24, 32, 40}) {
    const uint64_t size = good.size();
    EXPECT_EQ(refusal(count, size + 1), damaged + "the counts in the header are too large");
    EXPECT_EQ(refusal(count, size), damaged + "the file size does not match the header");
    EXPECT_EQ(refusal(count, size / 100), damaged + "the file size does not match the header");
  }
  EXPECT_EQ(refusal(72, uint64_t{1}), damaged + "the checksum does not match the header");
  for (size_t at = 0; at < 88; ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    folder.write("bad", bad);
    EXPECT_THROW(TokenStore(folder / "bad"), UserError) << "byte " << at;
  }
}

namespace {

std::vector<TokenStoreShard> shard_files(const TemporaryFolder& folder, const std::string& prefix,
                                         const std::vector<int64_t>& numbers) {
  std::vector<TokenStoreShard> files;
  for (const int64_t number : numbers) files.push_back({number, folder / (prefix + std::to_string(number))});
  return files;
}

}  // namespace

// Two parts, one of two files, with blank, lengthy and unusable lines, in several blocks.
class TokenStoreShards : public testing::Test {
 protected:
  TokenStoreShards() {
    std::string lengthy = "un";
    for (int i = 0; i < 60; ++i) lengthy += " pomme";
    std::string source, target;
    for (int i = 0; i < 9000; ++i) {
      source += i % 50 == 0 ? "\n" : "le chat " + std::to_string(i) + "\n";
      target += i % 70 == 0 ? "\x01\n" : "the cat\n";
    }
    corpus_ = {tsv_part(folder_.write("a.tsv", small_tsv(400) + "\n" + lengthy + "\tone\n" + small_tsv(90)))};
    corpus_.emplace_back();
    corpus_.back().source = folder_.write("b.fr", source);
    corpus_.back().target = folder_.write("b.en", target);
    options_.max_tokens = 50;
    options_.shards = 5;
    options_.threads = 3;
  }

  TemporaryFolder folder_;
  Corpus corpus_;
  TokenStoreOptions options_;
};

TEST_F(TokenStoreShards, TogetherAreThoseThatAreBuiltOneByOne) {
  int64_t pairs = 0, empty = 0, too_long = 0;
  const auto stores = TokenStore::open_or_build(shard_files(folder_, "all", {0, 1, 2, 3, 4}), corpus_,
                                                small_tokenizer(), options_);
  TokenStore::open_or_build(shard_files(folder_, "some", {3, 1}), corpus_, small_tokenizer(), options_);
  for (int64_t i = 0; i < 5; ++i) {
    const std::string number = std::to_string(i);
    options_.shard = i;
    options_.threads = 1;
    TokenStore::build(folder_ / ("one" + number), corpus_, small_tokenizer(), options_);
    const std::string alone = read_file(folder_ / ("one" + number));
    EXPECT_EQ(read_file(folder_ / ("all" + number)), alone) << i;
    if (i == 1 || i == 3) {
      EXPECT_EQ(read_file(folder_ / ("some" + number)), alone) << i;
    }
    const TokenStore& store = stores[static_cast<size_t>(i)];
    EXPECT_EQ(store.key(), token_store_key(corpus_, small_tokenizer(), options_));
    for (int64_t pair = 0; pair < store.pairs(); ++pair) EXPECT_EQ(store.record(pair).line % 5, i);
    pairs += store.pairs();
    empty += store.skipped_empty();
    too_long += store.skipped_long();
  }
  options_.shard = 0;
  options_.shards = 1;
  const TokenStore whole = TokenStore::open_or_build(folder_ / "w", corpus_, small_tokenizer(), options_);
  EXPECT_EQ(pairs, whole.pairs());
  EXPECT_EQ(empty, whole.skipped_empty());
  EXPECT_EQ(too_long, whole.skipped_long());
  EXPECT_GT(too_long, 0);
  EXPECT_EQ(empty, 1 + 180 + 129 - 26);  // every 350th line of the second part is empty on both sides
}

// Of version 3 of the format, with the tokens that calque wrote when every shard was a pass over the text.
TEST_F(TokenStoreShards, HaveTheBytesThatTheyAlwaysHad) {
  const Tokenizer golden = Tokenizer::load(source_folder() / "tests/golden/tokenizer/bpe.model");
  TokenStore::open_or_build(shard_files(folder_, "s", {0, 1, 2, 3, 4}), corpus_, golden, options_);
  std::vector<std::string> hashes;
  for (const char* name : {"s0", "s1", "s2", "s3", "s4"}) hashes.push_back(hex(hash_file(folder_ / name)));
  EXPECT_THAT(hashes, testing::ElementsAre("eb351850aa0c1d7f", "b9fdbf148fa7a388", "2a86c2c41ddec8e4",
                                           "3aa1d787a800e64f", "fe7343c49440f060"));
}

TEST_F(TokenStoreShards, MoreThanOnePassCanHoldAreBuiltToo) {
  corpus_ = {tsv_part(folder_.write("c.tsv", small_tsv(900)))};
  options_.shards = 300;
  std::vector<int64_t> numbers(300);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto stores =
      TokenStore::open_or_build(shard_files(folder_, "s", numbers), corpus_, small_tokenizer(), options_);
  int64_t pairs = 0;
  for (const TokenStore& store : stores) pairs += store.pairs();
  options_.shards = 1;
  EXPECT_EQ(TokenStore::open_or_build(folder_ / "w", corpus_, small_tokenizer(), options_).pairs(), pairs);
}

TEST_F(TokenStoreShards, ThoseThatAreThereStayAndAnErrorLeavesNone) {
  const auto files = shard_files(folder_, "s", {0, 1, 2});
  TokenStore::open_or_build({files[1]}, corpus_, small_tokenizer(), options_);
  const auto inode = [&] {
    struct stat status {};
    stat(files[1].path.c_str(), &status);
    return status.st_ino;
  };
  const auto before = inode();
  EXPECT_EQ(TokenStore::open_or_build(files, corpus_, small_tokenizer(), options_).size(), 3U);
  EXPECT_EQ(inode(), before);
  const Corpus broken = {tsv_part(folder_.write("c.tsv", small_tsv(5000) + "no tab\n"))};
  const fs::path sub = folder_ / "sub";
  EXPECT_THAT(
      [&] {
        TokenStore::open_or_build({{0, sub / "0"}, {1, sub / "1"}}, broken, small_tokenizer(), options_);
      },
      testing::ThrowsMessage<UserError>(HasSubstr("c.tsv:5001: expected 2 columns")));
  EXPECT_TRUE(fs::is_empty(sub));
  options_.shards = 3;
  const Corpus few = {tsv_part(folder_.write("d.tsv", "un\tone\nun\tone\n"))};
  EXPECT_THAT(
      [&] {
        TokenStore::open_or_build({{1, sub / "1"}, {0, sub / "0"}}, few, small_tokenizer(), options_);
      },
      testing::ThrowsMessage<UserError>(HasSubstr("no usable pairs in shard 1 of 3")));
  EXPECT_TRUE(fs::is_empty(sub));
}

TEST(TokenStore, AnErrorBeyondTheLimitOfAPartDoesNotCount) {
  const TemporaryFolder folder;
  CorpusPart part = tsv_part(folder.write("a.tsv", "un\tone\n\nun\tone\n\n\nno tab\n"));
  part.first = 2;
  const TokenStore store = TokenStore::open_or_build(folder / "s", {part}, small_tokenizer(), {});
  EXPECT_EQ(store.pairs(), 2);
  EXPECT_EQ(store.skipped_empty(), 1);
  part.first = 3;
  EXPECT_THAT([&] { TokenStore::build(folder / "t", {part}, small_tokenizer(), {}); },
              testing::ThrowsMessage<UserError>(HasSubstr("a.tsv:6: expected 2 columns")));
}

TEST(TokenStore, TextHasNoSource) {
  const TemporaryFolder folder;
  CorpusPart part;
  part.text = folder.write("a.txt", "le chat\nla maison\n");
  const TokenStore store = TokenStore::open_or_build(folder / "s", {part}, small_tokenizer(), {});
  EXPECT_TRUE(store.is_text());
  EXPECT_EQ(store.pairs(), 2);
  EXPECT_TRUE(store.source(0).empty());
  EXPECT_EQ(store.key(), token_store_key({part}, small_tokenizer(), {}));
  const Corpus pairs = {tsv_part(folder.write("a.tsv", "un\tone\n"))};
  EXPECT_FALSE(TokenStore::open_or_build(folder / "t", pairs, small_tokenizer(), {}).is_text());
}

}  // namespace calque

#include "calque/data/token_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
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
  // Of version 2 of the format. Another key would make all stores be built again.
  EXPECT_EQ(hex(key()), "b901591424f94963");
  std::set<uint64_t> keys = {key(), token_store_key(corpus, small_tokenizer(), options)};
  options.sampling_seed = 1;  // does not matter without sampling
  EXPECT_TRUE(keys.contains(key()));
  options.max_tokens = 255;
  keys.insert(key());
  options.sampling = 0.1;
  keys.insert(key());
  options.sampling_seed = 2;
  keys.insert(key());
  options.corpus_hash = 7;
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
  EXPECT_EQ(refusal(8, uint32_t{3}), damaged + "no valid header");
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

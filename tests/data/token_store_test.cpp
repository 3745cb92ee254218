#include "calque/data/token_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "calque/base/error.h"
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

TEST(TokenStore, TextHasNoSource) {
  const TemporaryFolder folder;
  CorpusPart part;
  part.text = folder.write("a.txt", "le chat\nla maison\n");
  const TokenStore store = TokenStore::open_or_build(folder / "s", {part}, small_tokenizer(), {});
  EXPECT_TRUE(store.is_text());
  EXPECT_EQ(store.pairs(), 2);
  EXPECT_TRUE(store.source(0).empty());
}

}  // namespace calque

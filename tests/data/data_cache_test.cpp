#include "calque/data/data_cache.h"

#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "data/small_corpus.h"

namespace calque {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> models_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".model") found.push_back(entry.path());
  }
  return found;
}

}  // namespace

TEST(DataCache, ATrainedTokenizerIsKeptAndADamagedOneIsTrainedAgain) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(folder.write("a.tsv", small_tsv(400)))};
  TokenizerConfig config;
  config.vocabulary = 330;
  const std::string trained = DataCache(folder / "cache", 1).tokenizer(config, corpus).serialized();
  ASSERT_EQ(models_in(folder / "cache").size(), 1U);
  const fs::path file = models_in(folder / "cache").front();
  EXPECT_EQ(read_file(file), trained);
  const auto before = fs::last_write_time(file) - std::chrono::hours(1);
  fs::last_write_time(file, before);
  EXPECT_EQ(DataCache(folder / "cache", 1).tokenizer(config, corpus).serialized(), trained);
  EXPECT_GT(fs::last_write_time(file), before);  // marked as used

  std::string damaged = trained;
  damaged[damaged.size() / 2] ^= 1;
  folder.write("cache/" + file.filename().string(), damaged);
  EXPECT_EQ(DataCache(folder / "cache", 1).tokenizer(config, corpus).serialized(), trained);
  EXPECT_EQ(read_file(file), trained);
}

TEST(DataCache, OtherColumnsOfOneFileAreAnotherCorpus) {
  const TemporaryFolder folder;
  CorpusPart first = tsv_part(folder.write("a.tsv", "un\tone\tein\n")), second = first;
  first.columns = {1, 2};
  second.columns = {1, 3};
  DataCache cache(folder / "cache", 1);
  EXPECT_NE(cache.corpus_hash({first}), cache.corpus_hash({second}));
}

TEST(DataCache, TheHashOfACorpusIsReadOnceAndKnowsEveryKeyOfAPart) {
  const TemporaryFolder folder;
  const CorpusPart part = tsv_part(folder.write("a.tsv", "un\tone\n"));
  DataCache cache(folder / "cache", 1);
  const uint64_t before = cache.corpus_hash({part});
  EXPECT_EQ(before, hash_corpus({part}));
  CorpusPart first = part, text;
  first.first = 1;
  text.text = part.pairs;
  EXPECT_EQ(cache.corpus_hash({first}), hash_corpus({first}));
  EXPECT_EQ(cache.corpus_hash({text}), hash_corpus({text}));
  EXPECT_EQ(cache.corpus_hash({part, part}), hash_corpus({part, part}));
  folder.write("a.tsv", "deux\ttwo\n");
  EXPECT_EQ(cache.corpus_hash({part}), before);
  EXPECT_NE(DataCache(folder / "cache", 1).corpus_hash({part}), before);
  EXPECT_EQ(cache.folder(), folder / "cache");
}

TEST(DataCache, TokensAreKeptUnderTheirKeyAndMarkedAsUsed) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(folder.write("a.tsv", small_tsv(20)))};
  DataCache cache(folder / "cache", 1);
  const TokenStore store = cache.tokens(corpus, small_tokenizer(), {});
  const auto file = folder / "cache" / (hex(token_store_key(corpus, small_tokenizer(), {})) + ".tokens");
  ASSERT_TRUE(fs::exists(file));
  const auto before = fs::last_write_time(file) - std::chrono::hours(1);
  fs::last_write_time(file, before);
  EXPECT_EQ(cache.tokens(corpus, small_tokenizer(), {}).pairs(), 20);
  EXPECT_GT(fs::last_write_time(file), before);
  TokenStoreOptions shorter;
  shorter.max_tokens = 10;
  EXPECT_LT(cache.tokens_at(folder / "own", corpus, small_tokenizer(), shorter).pairs(), 20);
  EXPECT_EQ(cache.tokens_at(folder / "own", corpus, small_tokenizer(), {}).pairs(), 20);  // replaced
}

TEST(DataCache, ATokenizerIsLoadedReusedOrTrained) {
  const TemporaryFolder folder;
  const Corpus corpus = {tsv_part(folder.write("a.tsv", small_tsv(400)))};
  DataCache cache(folder / "cache", 1);
  TokenizerConfig config;
  config.path = source_folder() / "tests/golden/tokenizer/bpe.model";
  EXPECT_EQ(cache.tokenizer(config, {}).serialized(), read_file(config.path));
  config.path = "";
  EXPECT_THROW(cache.tokenizer(config, {}), UserError);
  config.vocabulary = 330;
  const std::string trained = cache.tokenizer(config, corpus).serialized();
  config.sampling = 0.1;  // says how it is used, not how it is trained
  EXPECT_EQ(cache.tokenizer(config, corpus).serialized(), trained);
  EXPECT_EQ(models_in(folder / "cache").size(), 1U);
  config.vocabulary = 320;
  EXPECT_EQ(cache.tokenizer(config, corpus).size(), 320);
  EXPECT_EQ(models_in(folder / "cache").size(), 2U);
}

}  // namespace calque

#include "calque/data/data_cache.h"

#include <gtest/gtest.h>

#include "calque/base/file.h"
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

}  // namespace calque

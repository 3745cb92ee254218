#include "calque/data/batch_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "calque/base/error.h"
#include "calque/data/batch.h"
#include "data/small_corpus.h"

namespace calque {
namespace {

class BatchSamplerTest : public testing::Test {
 protected:
  BatchSamplerTest()
      : store_(TokenStore::open_or_build(folder_ / "s",
                                         {tsv_part(folder_.write("a.tsv", small_tsv(700))),
                                          tsv_part(folder_.write("b.tsv", small_tsv(90)))},
                                         small_tokenizer(), {})),
        format_(pair_format(small_tokenizer(), "")) {}

  BatchSampler sampler(int64_t batch_tokens, uint64_t seed = 1, std::vector<double> weights = {}) {
    return {store_, format_, {batch_tokens, seed, std::move(weights), true}};
  }

  std::map<int64_t, int> counts(BatchSampler& sampler, int64_t epoch) {
    std::map<int64_t, int> seen;
    for (int64_t step = 0; step < sampler.steps(epoch); ++step) {
      for (const int64_t pair : sampler.pairs(epoch, step)) ++seen[pair];
    }
    return seen;
  }

  TemporaryFolder folder_;
  TokenStore store_;
  SequenceFormat format_;
};

}  // namespace

TEST_F(BatchSamplerTest, EveryPairOccursOncePerEpoch) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 40; ++trial) {
    const int64_t batch_tokens = 100 + static_cast<int64_t>(random() % 3000);
    auto s = sampler(batch_tokens, random());
    const auto seen = counts(s, static_cast<int64_t>(random() % 5));
    ASSERT_EQ(static_cast<int64_t>(seen.size()), store_.pairs());
    for (const auto& [pair, count] : seen) ASSERT_EQ(count, 1) << pair;
  }
}

TEST_F(BatchSamplerTest, BatchesFillTheTokenLimitWithoutExceedingIt) {
  auto s = sampler(600);
  int64_t rows = 0;
  for (int64_t step = 0; step < s.steps(0); ++step) {
    const Batch batch = make_batch(store_, format_, s.pairs(0, step));
    EXPECT_LE(batch.rows(), 600);
    EXPECT_GT(batch.rows(), 0);
    rows += batch.rows();
  }
  EXPECT_GT(static_cast<double>(rows) / static_cast<double>(600 * s.steps(0)), 0.9);
}

TEST_F(BatchSamplerTest, SeekingReturnsTheSameBatchAsIterating) {
  auto iterating = sampler(400);
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> expected;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    for (int64_t step = 0; step < iterating.steps(epoch); ++step)
      expected[{epoch, step}] = iterating.pairs(epoch, step);
  }
  for (auto entry = expected.rbegin(); entry != expected.rend(); ++entry) {
    auto fresh = sampler(400);
    EXPECT_EQ(fresh.pairs(entry->first.first, entry->first.second), entry->second);
  }
}

TEST_F(BatchSamplerTest, OrderDependsOnSeedAndEpoch) {
  auto a = sampler(400, 1), b = sampler(400, 2);
  EXPECT_NE(a.pairs(0, 0), b.pairs(0, 0));
  EXPECT_NE(a.pairs(0, 0), a.pairs(1, 0));
}

TEST_F(BatchSamplerTest, BatchesHoldPairsOfSimilarLength) {
  auto s = sampler(500);
  double spread = 0;
  for (int64_t step = 0; step < s.steps(0); ++step) {
    const auto pairs = s.pairs(0, step);
    const auto [low, high] = std::minmax_element(pairs.begin(), pairs.end(), [&](int64_t a, int64_t b) {
      return store_.record(a).tokens() < store_.record(b).tokens();
    });
    spread += store_.record(*high).tokens() - store_.record(*low).tokens();
  }
  EXPECT_LT(spread / static_cast<double>(s.steps(0)), 8);  // over 60 in a random batch
}

TEST_F(BatchSamplerTest, WeightsSetHowOftenAPartOccurs) {
  auto s = sampler(500, 1, {0.5, 2.0});
  std::map<int64_t, int> two_epochs = counts(s, 0);
  for (const auto& [pair, count] : counts(s, 1)) two_epochs[pair] += count;
  for (int64_t pair = 0; pair < store_.pairs(); ++pair) {
    EXPECT_EQ(two_epochs[pair], store_.record(pair).part == 0 ? 1 : 4) << pair;
  }
}

TEST_F(BatchSamplerTest, WithoutShufflingPairsAndBatchesAreSortedByLength) {
  BatchSampler sorted(store_, format_, {500, 1, {}, false});
  std::vector<int64_t> all;
  for (int64_t step = 0; step < sorted.steps(0); ++step) {
    const auto pairs = sorted.pairs(0, step);
    all.insert(all.end(), pairs.begin(), pairs.end());
  }
  ASSERT_EQ(std::ssize(all), store_.pairs());
  for (int64_t i = 0; i < store_.pairs(); ++i) ASSERT_EQ(all[static_cast<size_t>(i)], i);
  EXPECT_TRUE(sorted.pairs(0, sorted.steps(0)).empty());
  EXPECT_TRUE(sorted.pairs(0, sorted.steps(0) + 1).empty());
  BatchSampler half(store_, format_, {500, 1, {0.5, 0.5}, false});
  std::map<int64_t, int> seen = counts(half, 0);
  for (const auto& [pair, count] : counts(half, 1)) seen[pair] += count;
  for (const auto& [pair, count] : seen) ASSERT_EQ(count, 1) << pair;
}

// From a Python port. Another order would change the batches of runs that are resumed.
TEST(BatchSampler, KeepsTheOrderOfEarlierVersions) {
  const TemporaryFolder folder;
  std::string tsv;
  for (int i = 0; i < 10; ++i) tsv += "le chat\tthe cat\n";
  const TokenStore store =
      TokenStore::open_or_build(folder / "s", {tsv_part(folder.write("a.tsv", tsv))}, small_tokenizer(), {});
  ASSERT_EQ(store.groups().size(), 1U);
  const SequenceFormat format{{1}, {3}, 2};
  const auto rows = format.rows(store.groups()[0].tokens, 0);
  BatchSampler sampler(store, format, {3 * rows, 5, {}, true});
  EXPECT_EQ(sampler.steps(0), 4);
  const std::vector<std::vector<int64_t>> expected = {{3},       {1, 2, 9}, {4, 5, 8}, {0, 6, 7},
                                                      {0, 7, 9}, {1, 5, 6}, {8},       {2, 3, 4}};
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t step = 0; step < 4; ++step)
      EXPECT_EQ(sampler.pairs(epoch, step), expected[static_cast<size_t>(4 * epoch + step)]);
  }
  const BatchSamplerOptions defaults;
  EXPECT_EQ(defaults.batch_tokens, 4096);
  EXPECT_EQ(defaults.seed, 1U);
  EXPECT_TRUE(defaults.shuffle);
}

TEST_F(BatchSamplerTest, RejectsATokenLimitBelowTheLongestPair) {
  const int64_t longest = format_.rows(store_.groups().back().tokens, 0);
  EXPECT_NO_THROW(sampler(longest));
  EXPECT_THROW(sampler(longest - 1), UserError);
  EXPECT_THAT([&] { sampler(10); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("train.batch_tokens=10 is too small")));
}

TEST(Batch, PacksPairsInTheGivenFormat) {
  SequenceFormat format{{1}, {3}, 2};
  Batch batch;
  batch.add(format, std::vector<int32_t>{10, 11}, std::vector<int32_t>{20, 21, 22});
  batch.add(format, std::vector<int32_t>{12}, std::vector<int32_t>{23});
  EXPECT_THAT(batch.tokens, testing::ElementsAre(1, 10, 11, 3, 20, 21, 22, 1, 12, 3, 23));
  EXPECT_THAT(batch.positions, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3));
  EXPECT_THAT(batch.offsets, testing::ElementsAre(0, 7, 11));
  EXPECT_THAT(batch.target_starts, testing::ElementsAre(4, 10));
  EXPECT_THAT(batch.loss_rows, testing::ElementsAre(3, 4, 5, 6, 9, 10));
  EXPECT_THAT(batch.labels, testing::ElementsAre(20, 21, 22, 2, 23, 2));
  EXPECT_EQ(batch.place.epoch, 0);
  EXPECT_EQ(batch.place.step, 0);
  EXPECT_EQ(batch.place.steps, 0);
}

TEST(Batch, SplittingKeepsEveryPairWhole) {
  SequenceFormat format{{1}, {3}, 2};
  Batch batch;
  batch.add(format, std::vector<int32_t>{10, 11}, std::vector<int32_t>{20, 21, 22});
  batch.add(format, std::vector<int32_t>{12}, std::vector<int32_t>{23});
  batch.add(format, std::vector<int32_t>{13}, std::vector<int32_t>{24});
  batch.place = {3, 4, 5};
  const auto parts = split_batch(batch, 8);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].rows(), 7);
  EXPECT_THAT(parts[1].positions, testing::ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  for (const Batch& part : parts) {
    EXPECT_EQ(part.place.epoch, 3);
    EXPECT_EQ(part.place.step, 4);
    EXPECT_EQ(part.place.steps, 5);
  }
  EXPECT_THAT(parts[1].tokens, testing::ElementsAre(1, 12, 3, 23, 1, 13, 3, 24));
  EXPECT_THAT(parts[1].offsets, testing::ElementsAre(0, 4, 8));
  EXPECT_THAT(parts[1].target_starts, testing::ElementsAre(3, 7));
  EXPECT_THAT(parts[1].loss_rows, testing::ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(parts[1].labels, testing::ElementsAre(23, 2, 24, 2));
  EXPECT_EQ(split_batch(batch, 3).size(), 3u);
  EXPECT_EQ(split_batch(batch, 1000).size(), 1u);
}

TEST(Batch, PlainTextHasALabelOnEveryRow) {
  Batch batch;
  batch.add({{1}, {}, 2}, {}, std::vector<int32_t>{20, 21});
  EXPECT_THAT(batch.tokens, testing::ElementsAre(1, 20, 21));
  EXPECT_THAT(batch.labels, testing::ElementsAre(20, 21, 2));
  EXPECT_THAT(batch.loss_rows, testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(batch.target_starts, testing::ElementsAre(1));
}

}  // namespace calque

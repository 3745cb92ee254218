#include "calque/data/batch_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "calque/data/batch_summary.h"
#include "data/small_corpus.h"

namespace calque {
namespace {

namespace fs = std::filesystem;

class BatchStreamTest : public testing::Test {
 protected:
  BatchStreamTest() : cache_(folder_ / "cache", 1) {
    options_.corpus = {tsv_part(folder_.write("a.tsv", small_tsv(60)), 0.5),
                       tsv_part(folder_.write("b.tsv", "le chat\tthe cat\nune pomme\tan apple\n"), 3)};
    options_.batch_tokens = 300;
  }

  BatchStream stream(int64_t epoch = 0, int64_t step = 0) {
    return {options_, small_tokenizer(), cache_, epoch, step};
  }

  TemporaryFolder folder_;
  DataCache cache_;
  BatchStreamOptions options_;
};

}  // namespace

TEST_F(BatchStreamTest, EveryBatchKnowsItsPlaceAndEpochsFollowEachOther) {
  BatchStream all = stream();
  EXPECT_EQ(all.pairs(), 62);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const int64_t steps = stream(epoch).epoch_steps();  // a weight of 0.5 gives epochs of different sizes
    ASSERT_GT(steps, 2);
    for (int64_t step = 0; step < steps; ++step) {
      const Batch batch = all.next();
      ASSERT_EQ(batch.place.epoch, epoch);
      ASSERT_EQ(batch.place.step, step);
      ASSERT_EQ(batch.place.steps, steps);
      EXPECT_LE(batch.rows(), 300);
      BatchStream from_here = stream(epoch, step);
      EXPECT_EQ(from_here.next().tokens, batch.tokens);
    }
  }
  EXPECT_EQ(stream(0, stream().epoch_steps()).next().place.epoch, 1);  // past the end: the next epoch begins
}

TEST_F(BatchStreamTest, AnEpochHoldsEachPartAsOftenAsItsWeightSays) {
  BatchStream two_epochs = stream();
  double rows = 0;
  int64_t pairs = 0;
  for (Batch batch = two_epochs.next(); batch.place.epoch < 2; batch = two_epochs.next()) {
    rows += static_cast<double>(batch.rows());
    pairs += batch.pairs();
  }
  EXPECT_EQ(pairs, 60 + 2 * 6);  // half of the first part per epoch, three times the second
  EXPECT_NEAR(two_epochs.epoch_rows(), rows / 2, 1e-9);
}

TEST_F(BatchStreamTest, TheOrderDependsOnTheSeed) {
  const Batch one = stream().next();
  options_.seed = 2;
  EXPECT_NE(stream().next().tokens, one.tokens);
  options_.seed = 1;
  EXPECT_EQ(stream().next().tokens, one.tokens);
}

TEST_F(BatchStreamTest, WithASamplingTokenizerEveryEpochIsSegmentedAnew) {
  options_.sampling = 0.4;
  BatchStream sampled = stream();
  const auto contents = [](const TokenStore& store) {
    std::vector<int32_t> all;
    for (int64_t i = 0; i < store.pairs(); ++i) {
      const auto ids = store.source(i);
      all.insert(all.end(), ids.begin(), ids.end());
    }
    return all;
  };
  std::vector<std::vector<int32_t>> epochs;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    while (sampled.next().place.epoch < epoch) {
    }
    epochs.push_back(contents(sampled.store()));
  }
  for (int64_t epoch = 0; epoch < 3; ++epoch)  // wherever a run begins
    EXPECT_EQ(contents(stream(epoch, 0).store()), epochs[static_cast<size_t>(epoch)]);
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  EXPECT_TRUE(fs::exists(folder_ / "cache/sampled.tokens"));
  options_.sampled = folder_ / "own.tokens";
  EXPECT_EQ(contents(stream().store()), epochs[0]);
  EXPECT_TRUE(fs::exists(folder_ / "own.tokens"));
  options_.seed = 2;
  EXPECT_NE(contents(stream().store()), epochs[0]);
}

TEST_F(BatchStreamTest, LimitsPromptAndTextReachTheBatches) {
  options_.max_tokens = 12;
  EXPECT_LT(stream().pairs(), 62);
  options_.prompt = "le chat {source} mange {target}";
  const Batch prompted = stream().next();
  const auto begin = pair_format(small_tokenizer(), options_.prompt).begin;
  EXPECT_EQ(std::vector<int64_t>(begin.begin(), begin.end()),
            std::vector<int64_t>(prompted.tokens.begin(), prompted.tokens.begin() + std::ssize(begin)));
  options_.prompt = "";
  CorpusPart text;
  text.text = folder_.write("a.txt", "le chat\n");
  options_.corpus = {text};
  const Batch plain = stream().next();
  EXPECT_EQ(plain.labels.size(), plain.tokens.size());
  EXPECT_EQ(plain.tokens.front(), 1);
}

TEST_F(BatchStreamTest, DefaultsAreThoseOfTheConfiguration) {
  const BatchStreamOptions defaults;
  EXPECT_EQ(defaults.max_tokens, 256);
  EXPECT_EQ(defaults.batch_tokens, 4096);
  EXPECT_EQ(defaults.sampling, 0);
  EXPECT_EQ(defaults.seed, 1U);
}

TEST_F(BatchStreamTest, ASummaryCountsOneEpoch) {
  BatchStream one_epoch = stream();
  int64_t rows = 0, labels = 0, pairs = 0;
  const int64_t steps = one_epoch.epoch_steps();
  for (int64_t i = 0; i < steps; ++i) {
    const Batch batch = one_epoch.next();
    rows += batch.rows();
    labels += std::ssize(batch.labels);
    pairs += batch.pairs();
  }
  BatchSummary summary = summarise_batches(options_, small_tokenizer(), cache_);
  EXPECT_GT(summary.seconds, 0);
  EXPECT_LT(summary.seconds, 60);
  EXPECT_NEAR(summary.tokens_per_second * summary.seconds, static_cast<double>(rows), 1e-6);
  const auto json = summary.to_json();
  EXPECT_EQ(json["batches"], steps);
  EXPECT_EQ(json["tokens"], rows);
  EXPECT_EQ(json["labels"], labels);
  EXPECT_EQ(json["pairs"], pairs);
  EXPECT_EQ(json["batch_tokens"], 300);
  EXPECT_EQ(json["vocabulary"], 330);
  EXPECT_NEAR(json["fill"].get<double>(), static_cast<double>(rows) / static_cast<double>(300 * steps), 1e-9);

  summary = {12'000, 40, 34'000, 17'000, 1000, 0.85, 5'000'000, 0.5, 330};
  EXPECT_EQ(summary.to_text(),
            "12,000 pairs in 40 batches of at most 1,000 tokens; 85.0 % full on average, no padding\n"
            "34,000 tokens, of which 17,000 contribute to the loss\n"
            "one epoch of batches made in 0.5 s: 5,000,000 tokens per second\n");
  const auto nothing = BatchSummary{}.to_json();
  for (const auto& [key, value] : nothing.items()) EXPECT_EQ(value, 0) << key;
  EXPECT_EQ(BatchSummary{}.seconds, 0);
}

namespace {

std::vector<std::vector<int64_t>> pairs_of(const Batch& batch) {
  std::vector<std::vector<int64_t>> all;
  for (int64_t i = 0; i < batch.pairs(); ++i)
    all.emplace_back(batch.tokens.begin() + batch.offsets[static_cast<size_t>(i)],
                     batch.tokens.begin() + batch.offsets[static_cast<size_t>(i) + 1]);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

class SharedBatches : public BatchStreamTest {
 protected:
  // The pairs of the first steps, of all ranks together.
  std::vector<std::vector<std::vector<int64_t>>> steps_of(int ranks, int steps, int64_t epoch = 0,
                                                          int64_t first = 0) {
    std::vector<BatchStream> streams;
    options_.ranks = ranks;
    int64_t longest = 0;
    for (options_.rank = 0; options_.rank < ranks; ++options_.rank) {
      streams.push_back(stream(epoch, first));
      longest = std::max(longest, streams.back().epoch_steps());
    }
    options_.rank = 0;
    options_.ranks = 1;
    for (BatchStream& one : streams) one.set_epoch_steps(longest);
    std::vector<std::vector<std::vector<int64_t>>> all(static_cast<size_t>(steps));
    for (auto& step : all) {
      Batch::Place place;
      for (BatchStream& one : streams) {
        const Batch batch = one.next();
        EXPECT_TRUE(&one == &streams.front() || batch.place.step == place.step);
        place = batch.place;
        const auto pairs = pairs_of(batch);
        step.insert(step.end(), pairs.begin(), pairs.end());
      }
      std::sort(step.begin(), step.end());
    }
    return all;
  }
};

TEST_F(SharedBatches, RanksTogetherHaveTheBatchesOfOne) {
  const auto alone = steps_of(1, 20);
  for (const int ranks : {2, 3, 5}) EXPECT_EQ(steps_of(ranks, 20), alone) << ranks;
}

TEST_F(SharedBatches, WithShardsToo) {
  options_.corpus = {tsv_part(folder_.write("a.tsv", small_tsv(61)), 1)};  // shards of unequal size
  options_.shards = 4;
  options_.batch_tokens = 600;
  const auto alone = steps_of(1, 40);
  for (const int ranks : {2, 3, 4}) EXPECT_EQ(steps_of(ranks, 40), alone) << ranks;
  // Any step is found directly.
  const int64_t epoch_steps = stream().epoch_steps();
  for (const int64_t step : {int64_t{1}, epoch_steps - 1, epoch_steps, 3 * epoch_steps + 1}) {
    EXPECT_EQ(steps_of(2, 1, step / epoch_steps, step % epoch_steps)[0], alone[static_cast<size_t>(step)]);
  }
}

TEST_F(SharedBatches, ShardsAreTheWholeCorpusAndAProcessOpensItsOwnAlone) {
  options_.corpus = {tsv_part(folder_.write("a.tsv", small_tsv(61)), 1)};
  options_.shards = 4;
  options_.batch_tokens = 600;
  options_.ranks = 2;
  const int64_t first = stream().pairs();
  options_.rank = 1;
  EXPECT_EQ(first + stream().pairs(), 61);
  EXPECT_EQ(std::abs(first - stream().pairs()), 1);
}

// What "prepared" means: the shards, whoever made them, have the batches of the shards that the stream makes.
TEST_F(SharedBatches, PreparedShardsHaveTheSameBatches) {
  options_.shards = 4;
  options_.batch_tokens = 600;
  const auto unprepared = steps_of(1, 10);
  cache_ = DataCache(folder_ / "other", 2);
  TokenStoreOptions store_options;
  store_options.shards = 4;
  const auto stores = cache_.token_shards(options_.corpus, small_tokenizer(), store_options, {2, 0, 3, 1});
  const auto count = [&] {
    return std::distance(fs::directory_iterator(folder_ / "other"), fs::directory_iterator());
  };
  EXPECT_EQ(count(), 4);
  EXPECT_EQ(steps_of(2, 10), unprepared);
  EXPECT_EQ(count(), 4);
}

// With a step that is as long as a shard, each has its pairs once: together, the epoch of one store.
TEST_F(SharedBatches, AnEpochOfShardsHasThePairsOfTheWholeCorpus) {
  options_.corpus = {tsv_part(folder_.write("a.tsv", small_tsv(60)))};
  options_.batch_tokens = 4 * 4000;
  const auto whole = steps_of(1, 1);
  options_.shards = 4;
  EXPECT_EQ(steps_of(1, 1), whole);
  EXPECT_EQ(steps_of(4, 1), whole);
  EXPECT_EQ(whole[0].size(), 60U);
}

TEST(ShareOf, SharesHaveAboutAsManyTokens) {
  std::vector<int64_t> sorted_by_length(64);
  std::iota(sorted_by_length.begin(), sorted_by_length.end(), 1);
  std::vector<int64_t> sums;
  for (int rank = 0; rank < 4; ++rank) {
    const auto share = share_of(sorted_by_length, rank, 4);
    EXPECT_EQ(share.size(), 16U);
    sums.push_back(std::accumulate(share.begin(), share.end(), int64_t{0}));
  }
  EXPECT_THAT(sums, testing::Each(520));
  EXPECT_THAT(share_of({7, 8, 9}, 1, 2), testing::ElementsAre(8, 9));
  EXPECT_THAT(share_of({7, 8, 9}, 0, 2), testing::ElementsAre(7));
}

}  // namespace calque

// The benchmarks say what they measured; how much is for no test to judge.
#include "calque/train/bench.h"

#include <gtest/gtest.h>

#include <cmath>

#include "calque/base/log.h"
#include "calque/train/part_times.h"
#include "calque/train/training_loop.h"
#include "train/small_run.h"

namespace calque {

TEST(PartTimes, ProductsCountForThemselvesAndTheOptimizerForAllOfItsOwn) {
  const auto a = torch::randn({200, 200});
  const PartTimes times;
  {
    RECORD_USER_SCOPE("norms");
    torch::mm(a, a);
    (a + a).sum();
  }
  {
    RECORD_USER_SCOPE("optimizer");
    for (int i = 0; i < 20; ++i) {
      RECORD_USER_SCOPE("norms");
      torch::mm(a, a);
    }
  }
  const auto seconds = times.seconds();
  ASSERT_EQ(seconds.size(), 3U);  // what is inside the optimizer counts as the optimizer's alone
  for (const char* part : {"products", "norms", "optimizer"}) EXPECT_GT(seconds.at(part), 0) << part;
}

TEST(Bench, TrainingIsToldBesideTheLimitAndByParts) {
  log::start(log::Verbosity::quiet);
  const TemporaryFolder folder;
  TrainBenchOptions options;
  options.cache = folder / "cache";
  options.seconds = 0.5;
  options.threads = {1, 2};
  RunConfig config = small_run(folder);
  config.train.precision = Precision::bfloat16;  // beside float32, which is always timed
  const nlohmann::json told = bench_training(config, options).to_json();
  EXPECT_GT(told["limit_gflops"]["float32"], 0);
  EXPECT_GT(told["limit_gflops"]["bfloat16"], 0);
  ASSERT_EQ(told["train"].size(), 4U);
  EXPECT_EQ(told["train"][2]["precision"], "float32");
  EXPECT_EQ(told["train"][3]["precision"], "bfloat16");
  for (const auto& row : told["train"]) {
    for (const char* key :
         {"tokens_per_second", "pairs_per_second", "flops_per_token", "share_of_limit", "peak_bytes"})
      EXPECT_GT(row[key], 0) << key;
    double sum = 0;
    for (const char* part :
         {"products", "attention", "norms", "activation", "loss", "optimizer", "waiting", "rest"}) {
      ASSERT_TRUE(row["breakdown"].contains(part)) << part;
      sum += row["breakdown"][part].get<double>();
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_GE(row["breakdown"]["rest"], 0);
  }
  EXPECT_EQ(told["train"][3]["threads"], 2);
}

TEST(Bench, DecodingIsToldForEachWayOfSearching) {
  log::start(log::Verbosity::quiet);
  const TemporaryFolder folder;
  RunConfig config = small_run(folder);
  config.train.validate_sentences = 0;
  TrainingOptions training;
  training.runs = folder / "runs";
  const TrainingResult result = train(config, training);
  DecodeBenchOptions options;
  options.sentences = 4;
  options.single = 2;
  const TestSet test{
      "test", {"Bonjour.", "Merci.", "Il dort.", "Oui.", "Non."}, {"a", "b", "c", "d", "e"}, 0};
  const nlohmann::json told =
      bench_decoding(find_model(training.runs, result.run.filename().string()), test, options).to_json();
  ASSERT_EQ(told["decode"].size(), 12U);
  for (const auto& row : told["decode"]) {
    EXPECT_GT(row["sentences_per_second"], 0);
    EXPECT_GT(row["tokens_per_second"], 0);
    EXPECT_GT(row["peak_bytes"], 0);
  }
  EXPECT_EQ(told["decode"][0]["precision"], "float32");
  EXPECT_EQ(told["decode"][11]["precision"], "int8");
}

}  // namespace calque

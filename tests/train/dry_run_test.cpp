#include "calque/train/dry_run.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/kernels/threads.h"
#include "calque/train/run_setup.h"
#include "train/small_run.h"

namespace calque {
namespace {

class DryRunTest : public testing::Test {
 protected:
  DryRunTest() { log::start(log::Verbosity::quiet); }
  TrainingOptions options() const { return {folder_ / "runs", false, false}; }

  TemporaryFolder folder_;
};

}  // namespace

TEST_F(DryRunTest, CountsParametersByPart) {
  RunConfig config = small_run(folder_);
  const int64_t vocabulary = Tokenizer::load(config.tokenizer.path).size();
  const TrainingEstimate tied = estimate_training(config, options());
  EXPECT_EQ(tied.embedding, vocabulary * 32);
  EXPECT_EQ(tied.attention, 2 * (32 * 96 + 32 * 32));
  EXPECT_EQ(tied.mlp, 2 * (32 * 96 + 48 * 32));
  EXPECT_EQ(tied.norms, 5 * 32);
  EXPECT_EQ(tied.output, 0);
  EXPECT_EQ(tied.parameters, tied.embedding + tied.attention + tied.mlp + tied.norms);
  EXPECT_EQ(tied.steps, 30);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/small"));
  config.model.tied_embeddings = false;
  const TrainingEstimate untied = estimate_training(config, options());
  EXPECT_EQ(untied.output, vocabulary * 32);
  EXPECT_EQ(untied.norms, 5 * 32);
  EXPECT_EQ(untied.parameters, tied.parameters + vocabulary * 32);
}

TEST_F(DryRunTest, StepsAndMinutesFollowFromTheTimedSteps) {
  RunConfig config = small_run(folder_);
  config.train.steps = 0;
  config.train.tokens = 100'000;
  config.train.threads = 1;
  set_num_threads(2);
  const TrainingEstimate estimate = estimate_training(config, options());
  EXPECT_EQ(num_threads(), 1);
  DataCache cache(options().cache(), 1);
  BatchStream stream(stream_options(config), Tokenizer::load(config.tokenizer.path), cache, 0, 0);
  EXPECT_EQ(estimate.pairs, stream.pairs());
  EXPECT_EQ(estimate.steps_per_epoch, stream.epoch_steps());
  EXPECT_EQ(estimate.tokens_per_epoch, stream.epoch_rows());
  stream.next();
  double rows = 0;  // of the five steps after the first
  for (int i = 0; i < 5; ++i) rows += static_cast<double>(stream.next().rows());
  EXPECT_DOUBLE_EQ(estimate.steps, 100'000 / (rows / 5));
  EXPECT_GT(estimate.tokens_per_second, 0);
  EXPECT_NEAR(estimate.minutes * 60 * estimate.tokens_per_second, 100'000, 1e-3);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_GT(estimate.peak_bytes, 20'000'000);
  EXPECT_LE(estimate.peak_bytes, usage.ru_maxrss * 1024);
  EXPECT_EQ(estimate.peak_bytes % 1024, 0);
}

TEST_F(DryRunTest, TheLearningRateIsZeroSoThatTheTimedStepsStayFinite) {
  RunConfig config = small_run(folder_);
  config.train.learning_rate = 1e30;
  EXPECT_EQ(estimate_training(config, options()).steps, 30);
}

TEST_F(DryRunTest, AnEmptyCorpusIsRefused) {
  RunConfig config = small_run(folder_);
  config.data.train.clear();
  EXPECT_THROW(estimate_training(config, options()), UserError);
  config = small_run(folder_);
  config.data.train.front().pairs = folder_ / "nowhere.tsv";
  EXPECT_THROW(estimate_training(config, options()), UserError);
}

TEST_F(DryRunTest, JsonNamesEveryNumber) {
  using nlohmann::json;
  const TrainingEstimate estimate{1, 2, 3, 4, 5, 6, 7, 8.6, 9, 10.4, 11.5, 12.5, 13};
  EXPECT_EQ(
      estimate.to_json(),
      (json{{"parameters",
             {{"total", 1}, {"embedding", 2}, {"attention", 3}, {"mlp", 4}, {"norms", 5}, {"output", 6}}},
            {"pairs", 7},
            {"tokens_per_epoch", 9},
            {"steps_per_epoch", 9},
            {"steps", 10},
            {"tokens_per_second", 11.5},
            {"minutes", 12.5},
            {"peak_bytes", 13}}));
  EXPECT_EQ(TrainingEstimate().to_json(),
            (TrainingEstimate{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}.to_json()));
}

}  // namespace calque

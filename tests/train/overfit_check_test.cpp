#include "calque/train/overfit_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/kernels/threads.h"
#include "calque/train/run_setup.h"
#include "calque/train/trainer.h"
#include "train/small_run.h"

namespace calque {
namespace {

class OverfitTest : public testing::Test {
 protected:
  OverfitTest() {
    log::start(log::Verbosity::quiet);
    config_ = small_run(folder_);
    config_.train.overfit_batch = true;
    config_.train.batch_tokens = 200;
  }
  OverfitResult overfit() const { return overfit_batch(config_, {folder_ / "runs"}); }

  TemporaryFolder folder_;
  RunConfig config_;
};

}  // namespace

TEST_F(OverfitTest, OneBatchCanBeLearntByHeart) {
  config_.train.steps = 500;
  config_.train.learning_rate = 1e-2;
  const OverfitResult result = overfit();
  EXPECT_TRUE(result.overfitted);
  EXPECT_FALSE(result.interrupted);
  EXPECT_LT(result.loss, 0.1);
  EXPECT_LT(result.steps, 500);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/small"));
}

TEST_F(OverfitTest, EveryStepIsOnTheFirstBatchAfterAWarmUpOfTwentySteps) {
  config_.train.steps = 23;
  config_.train.learning_rate = 1e-3;
  config_.train.threads = 1;
  set_num_threads(2);
  const OverfitResult result = overfit();
  EXPECT_EQ(num_threads(), 1);
  EXPECT_EQ(result.steps, 23);
  EXPECT_FALSE(result.overfitted);

  DataCache cache(folder_ / "cache", 1);
  const Tokenizer tokenizer = choose_tokenizer(config_, cache);
  const Batch batch = BatchStream(stream_options(config_), tokenizer, cache, 0, 0).next();
  Trainer trainer(make_model(config_, tokenizer, torch::kCPU), config_.train, 1, torch::kCPU);
  double first = 0, loss = 0;
  for (int i = 0; i < 23; ++i) {
    loss = trainer.step(batch, 1e-3 * std::min(1.0, (i + 1) / 20.0)).loss;
    if (i == 0) first = loss;
  }
  EXPECT_DOUBLE_EQ(result.first_loss, first);
  EXPECT_DOUBLE_EQ(result.loss, loss);
}

TEST_F(OverfitTest, GivesUpAfterFiveHundredSteps) {
  config_.train.learning_rate = 1e-12;
  config_.data.max_tokens = 12;
  config_.train.threads = 1;  // two would wait for each other more than they compute
  config_.train.batch_tokens = 16;
  for (const int64_t steps : {0, 1000}) {
    config_.train.steps = steps;
    const OverfitResult result = overfit();
    EXPECT_EQ(result.steps, 500);
    EXPECT_FALSE(result.overfitted);
  }
  config_.train.steps = 1;
  EXPECT_EQ(overfit().steps, 1);
}

TEST_F(OverfitTest, StopsOnceTheLossIsNotFinite) {
  config_.train.steps = 100;
  config_.train.learning_rate = 1e300;
  const OverfitResult result = overfit();
  EXPECT_FALSE(std::isfinite(result.loss));
  EXPECT_LT(result.steps, 100);
  EXPECT_FALSE(result.overfitted);
}

TEST_F(OverfitTest, AnEmptyCorpusIsRefused) {
  config_.data.train.clear();
  EXPECT_THROW(overfit(), UserError);
  config_ = small_run(folder_);
  config_.data.train.front().pairs = folder_ / "nowhere.tsv";
  EXPECT_THROW(overfit(), UserError);
}

TEST(OverfitResult, JsonNamesEveryNumber) {
  EXPECT_EQ((OverfitResult{true, false, 1.5, 2.5, 3}.to_json()),
            (nlohmann::json{{"overfitted", true}, {"first_loss", 1.5}, {"loss", 2.5}, {"steps", 3}}));
  EXPECT_EQ(OverfitResult().to_json(),
            (nlohmann::json{{"overfitted", false}, {"first_loss", 0}, {"loss", 0}, {"steps", 0}}));
  EXPECT_FALSE(OverfitResult().interrupted);
}

}  // namespace calque

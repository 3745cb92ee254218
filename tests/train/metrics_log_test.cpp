#include "calque/train/metrics_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/file.h"
#include "calque/base/log.h"
#include "calque/train/matrix_speed.h"
#include "temporary_folder.h"
#include "tiny_model.h"
#include "train/random_batch.h"

namespace calque {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class MetricsLogTest : public testing::Test {
 protected:
  MetricsLogTest() : run_(folder_ / "run", RunFolder::Mode::create), decoder_(make_decoder(tiny_config(50))) {
    config_.train.log_every = 2;
    config_.train.batch_tokens = 64;
  }

  // The sixth step of eight, in the second epoch.
  static TrainerState state_at(int64_t step) {
    TrainerState state;
    state.step = step;
    state.epoch = 1;
    state.epoch_step = 1;
    state.epoch_steps = 4;
    state.tokens = 1000 * step;
    return state;
  }
  static StepResult of(const Batch& batch, StepResult result) {
    result.rows = batch.rows();
    result.labels = static_cast<int64_t>(batch.labels.size());
    return result;
  }
  static MetricsLog::Step step(const StepResult& result, double step_seconds, double waited_seconds) {
    return {result, 0.001, step_seconds, waited_seconds, 0.75, 300};
  }
  std::vector<json> lines() const { return read_metrics(run_.metrics()); }
  size_t event_bytes() const {
    size_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(run_.path() / "tensorboard")) bytes += entry.file_size();
    return bytes;
  }

  TemporaryFolder folder_;
  RunFolder run_;
  RunConfig config_;
  std::shared_ptr<Decoder> decoder_;
};

}  // namespace

TEST_F(MetricsLogTest, ALineIsTheMeanSinceTheLastOne) {
  MetricsLog metrics(run_, config_, *decoder_, state_at(4), {});
  const Batch small = random_batch(1, 4), large = random_batch(2, 9);
  const auto labels = [](const Batch& batch) { return static_cast<double>(batch.labels.size()); };
  const auto rows = static_cast<double>(small.rows() + large.rows());

  metrics.record_step(step(of(small, {3.0, 0.5, false}), 100, 20), state_at(5));
  EXPECT_TRUE(lines().empty());
  metrics.record_step(step(of(large, {2.0, 0.25, false}), 200, 30), state_at(6));
  ASSERT_EQ(lines().size(), 1U);
  const json first = lines().front();
  EXPECT_EQ(first["step"], 6);
  EXPECT_EQ(first["epoch"], 1.25);
  EXPECT_EQ(first["tokens"], 6000);
  EXPECT_EQ(first["seconds"], 300);
  EXPECT_NEAR(first["loss"], (3 * labels(small) + 2 * labels(large)) / (labels(small) + labels(large)), 1e-9);
  EXPECT_EQ(first["learning_rate"], 0.001);
  EXPECT_EQ(first["gradient_norm"], 0.25);
  EXPECT_NEAR(first["tokens_per_second"], rows / 350, 1e-9);
  EXPECT_EQ(first["waited_seconds"], 50);

  // Nothing of the first window is left in the second.
  metrics.record_step(step(of(small, {1.0, 0.5, false}), 10, 5), state_at(7));
  metrics.record_step(step(of(small, {1.0, 0.5, false}), 10, 5), state_at(8));
  ASSERT_EQ(lines().size(), 2U);
  const json second = lines().back();
  EXPECT_NEAR(second["loss"], 1, 1e-9);
  EXPECT_NEAR(second["tokens_per_second"], 2.0 * static_cast<double>(small.rows()) / 30, 1e-9);
  EXPECT_EQ(second["waited_seconds"], 10);

  // The machine's limit is one number for all lines, so that shares are to each other as the work is.
  const auto work = [&](const json& line, double labels_per_row) {
    return line["tokens_per_second"].get<double>() * training_flops_per_token(*decoder_, labels_per_row);
  };
  EXPECT_GT(first["share_of_limit"], 0);
  EXPECT_NEAR(second["share_of_limit"].get<double>() / first["share_of_limit"].get<double>(),
              work(second, labels(small) / static_cast<double>(small.rows())) /
                  work(first, (labels(small) + labels(large)) / rows),
              1e-9);
}

TEST_F(MetricsLogTest, ASkippedStepCountsForTheSpeedButNotForTheLoss) {
  config_.train.log_every = 1;
  MetricsLog metrics(run_, config_, *decoder_, state_at(4), {});
  const Batch batch = random_batch(1);
  const StepResult skipped = of(batch, {std::nan(""), std::nan(""), true});
  metrics.record_step(step(skipped, 10, 0), state_at(5));
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_TRUE(lines()[0]["loss"].is_null());
  EXPECT_TRUE(lines()[0]["gradient_norm"].is_null());
  EXPECT_NEAR(lines()[0]["tokens_per_second"], static_cast<double>(batch.rows()) / 10, 1e-9);
  // A step that took no time that a clock shows is neither infinitely fast nor above the limit.
  metrics.record_step(step(of(batch, {1, 1, false}), 0, 0), state_at(6));
  EXPECT_NEAR(lines()[1]["tokens_per_second"], static_cast<double>(batch.rows()) * 1e9, 1);
  EXPECT_EQ(lines()[1]["share_of_limit"], 1);
}

TEST_F(MetricsLogTest, TheProgressLineSaysWhatIsLeft) {
  MetricsLog metrics(run_, config_, *decoder_, state_at(4), {});
  const Batch batch = random_batch(1);
  const StepResult result = of(batch, {1.23456, 1, false});
  log::start(log::Verbosity::quiet);
  log::start_file(folder_ / "log.txt");
  metrics.record_step(step(result, 0.75, 0.25), state_at(5));
  // 300 seconds are three quarters.
  const std::string line = metrics.progress_line(step(result, 0.75, 0.25), state_at(5));
  EXPECT_THAT(
      line, testing::MatchesRegex("step 5 · 1 min 40 s left · loss 1.235 · " + std::to_string(batch.rows()) +
                                  " tokens/s · epoch 1.25 · learning rate 0.001 · [0-9]+ % of peak FLOP/s"));
  MetricsLog::Step begun = step(result, 0.75, 0.25);
  begun.fraction_done = 0;
  EXPECT_THAT(metrics.progress_line(begun, state_at(5)), testing::StartsWith("step 5 · 0 ms left"));
  // A log file has such a line every half minute only.
  metrics.record_step(step(result, 0.75, 0.25), state_at(6));
  log::stop_file();
  EXPECT_EQ(read_file(folder_ / "log.txt"), "");
}

TEST_F(MetricsLogTest, ItsShareIsThatOfTheLine) {
  MetricsLog metrics(run_, config_, *decoder_, state_at(4), {});
  const Batch batch = random_batch(1);
  const StepResult result = of(batch, {1, 1, false});
  metrics.record_step(step(result, 1e-9, 0), state_at(5));  // faster than any machine
  EXPECT_THAT(metrics.progress_line(step(result, 1e-9, 0), state_at(5)),
              testing::EndsWith("100 % of peak FLOP/s"));
}

TEST_F(MetricsLogTest, WhatAKilledRunWroteAfterItsCheckpointIsDroppedAndTensorBoardsFileWrittenAgain) {
  for (int i = 1; i <= 4; ++i) append_metrics(run_.metrics(), {{"step", i}, {"loss", 1.0 / i}});
  append_metrics(run_.metrics(), {{"step", 2}, {"valid_loss", 1}});
  append_metrics(run_.metrics(), {{"step", 3}, {"valid_loss", 1}});
  fs::create_directories(run_.path() / "tensorboard");
  write_file(run_.path() / "tensorboard/events.old", "old");
  config_.train.tensorboard = true;
  RunState state;
  state.validated_step = 2;
  MetricsLog metrics(run_, config_, *decoder_, state_at(3), state);
  EXPECT_EQ(lines().size(), 4U);
  EXPECT_FALSE(fs::exists(run_.path() / "tensorboard/events.old"));
  const size_t rewritten = event_bytes();
  {
    const TemporaryFolder other;
    EventFile events(other.path());
    for (const json& line : lines()) events.add_line(line);
    for (const auto& entry : fs::directory_iterator(other.path())) EXPECT_EQ(entry.file_size(), rewritten);
  }
  metrics.record(state_at(3), 60, {{"valid_bleu", 12.5}});
  EXPECT_EQ(lines().size(), 5U);
  EXPECT_EQ(lines().back(),
            (json{{"step", 3}, {"epoch", 1.25}, {"tokens", 3000}, {"seconds", 60.0}, {"valid_bleu", 12.5}}));
  EXPECT_GT(event_bytes(), rewritten);
}

TEST_F(MetricsLogTest, WithoutTensorBoardThereIsNoFolderForIt) {
  MetricsLog metrics(run_, config_, *decoder_, {}, {});
  EXPECT_FALSE(fs::exists(run_.path() / "tensorboard"));
}

}  // namespace calque

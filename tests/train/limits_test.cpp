#include "calque/train/limits.h"

#include <gtest/gtest.h>

#include <limits>

namespace calque {
namespace {

TrainConfig no_limit() {
  TrainConfig config;
  config.steps = 0;
  return config;
}

}  // namespace

TEST(Limits, EachLimitAloneIsReachedAtItsValueAndNotBefore) {
  struct Case {
    TrainConfig config;
    TrainerState half;  // and twice as much is the end
    double half_seconds;
    const char* reached;
  };
  std::vector<Case> cases(4, {no_limit(), {}, 0, ""});
  cases[0].config.steps = 10;
  cases[0].half.step = 5;
  cases[0].reached = "train.steps=10";
  cases[1].config.epochs = 0.5;
  cases[1].half.epoch_steps = 8;
  cases[1].half.epoch_step = 2;
  cases[1].reached = "train.epochs=0.5";
  cases[2].config.tokens = 4000;
  cases[2].half.tokens = 2000;
  cases[2].reached = "train.tokens=4000";
  cases[3].config.minutes.value = 0.5;
  cases[3].half_seconds = 15;
  cases[3].reached = "train.minutes=0.5";
  for (const Case& c : cases) {
    const Limits limits(c.config);
    EXPECT_DOUBLE_EQ(limits.fraction_done(c.half, c.half_seconds), 0.5) << c.reached;
    EXPECT_EQ(limits.reached(c.half, c.half_seconds), std::nullopt) << c.reached;
    TrainerState end = c.half;
    end.step *= 2;
    end.epoch_step *= 2;
    end.tokens *= 2;
    EXPECT_DOUBLE_EQ(limits.fraction_done(end, 2 * c.half_seconds), 1) << c.reached;
    EXPECT_EQ(limits.reached(end, 2 * c.half_seconds), c.reached);
  }
}

TEST(Limits, TheNearestOfSeveralCounts) {
  TrainConfig config = no_limit();
  config.steps = 10;
  config.tokens = 1000;
  config.minutes.value = 1;
  TrainerState state;
  state.step = 2;
  state.tokens = 700;
  const Limits limits(config);
  EXPECT_DOUBLE_EQ(limits.fraction_done(state, 30), 0.7);
  EXPECT_DOUBLE_EQ(limits.fraction_done(state, 54), 0.9);
  EXPECT_EQ(limits.reached(state, 61), "train.minutes=1");
}

TEST(Limits, WithoutAnyNothingIsReached) {
  TrainerState state;
  state.step = 1'000'000;
  state.tokens = 1'000'000;
  const Limits limits(no_limit());
  EXPECT_EQ(limits.fraction_done(state, 1e9), 0);
  EXPECT_EQ(limits.reached(state, 1e9), std::nullopt);
  EXPECT_EQ(limits.expected_steps(100, 50, 1000), std::numeric_limits<double>::max());
}

TEST(Limits, ExpectedStepsFollowFromTheSpeedAndTheFirstLimitDecides) {
  // 100 steps per epoch, 50 tokens per step, 200 tokens per second: 4 steps per second.
  const auto expected = [](const TrainConfig& config) { return Limits(config).expected_steps(100, 50, 200); };
  TrainConfig config = no_limit();
  config.minutes.value = 0.5;
  EXPECT_DOUBLE_EQ(expected(config), 120);
  config.epochs = 0.5;
  EXPECT_DOUBLE_EQ(expected(config), 50);
  config.tokens = 1;
  EXPECT_DOUBLE_EQ(expected(config), 0.02);
  config = no_limit();
  config.tokens = 2000;
  config.epochs = 3;
  config.steps = 300;
  EXPECT_DOUBLE_EQ(expected(config), 40);
  config.steps = 1;
  EXPECT_DOUBLE_EQ(expected(config), 1);
}

}  // namespace calque

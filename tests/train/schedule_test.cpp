#include "calque/train/schedule.h"

#include <gtest/gtest.h>

namespace calque {
namespace {

TrainConfig with(ScheduleKind kind) {
  TrainConfig config;
  config.schedule = kind;
  config.warmup_steps = 100;
  return config;
}

}  // namespace

TEST(Schedule, RisesOverTheWarmUp) {
  const TrainConfig config = with(ScheduleKind::constant);
  EXPECT_DOUBLE_EQ(learning_rate_share(config, 0, 0), 0.01);
  EXPECT_DOUBLE_EQ(learning_rate_share(config, 49, 0), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_share(config, 100, 0), 1);
}

TEST(Schedule, FallsAsItsNameSays) {
  // A run of 2,000 steps, 100 of them warm-up: half of the fall is over at step 1,050.
  EXPECT_NEAR(learning_rate_share(with(ScheduleKind::cosine), 1050, 1050 / 2000.0), 0.5, 1e-9);
  EXPECT_NEAR(learning_rate_share(with(ScheduleKind::cosine), 101, 101 / 2000.0), 1, 1e-5);
  EXPECT_NEAR(learning_rate_share(with(ScheduleKind::linear), 1525, 1525 / 2000.0), 0.25, 1e-9);
  EXPECT_DOUBLE_EQ(learning_rate_share(with(ScheduleKind::inverse_sqrt), 399, 0.9), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_share(with(ScheduleKind::constant), 1620, 1620 / 2000.0), 1);
  EXPECT_NEAR(learning_rate_share(with(ScheduleKind::constant), 1810, 1810 / 2000.0), 0.5, 1e-9);
}

TEST(Schedule, EndsAtTheFinalShare) {
  for (const ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::constant}) {
    TrainConfig config = with(kind);
    EXPECT_NEAR(learning_rate_share(config, 1000, 1), 0, 1e-12);
    config.final_lr_fraction = 0.1;
    EXPECT_NEAR(learning_rate_share(config, 1000, 1), 0.1, 1e-12);
    EXPECT_NEAR(learning_rate_share(config, 1000, 5), 0.1, 1e-12);  // past the end it stays there
  }
}

TEST(Schedule, InverseSquareRootNeverFallsBelowTheFinalShare) {
  TrainConfig config = with(ScheduleKind::inverse_sqrt);
  config.final_lr_fraction = 0.25;
  EXPECT_DOUBLE_EQ(learning_rate_share(config, 399, 0), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_share(config, 1'000'000, 0), 0.25);
  config.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate_share(config, 0, 0), 1);
  EXPECT_DOUBLE_EQ(learning_rate_share(config, 3, 0), 0.5);
}

TEST(Schedule, DuringTheWarmUpNothingFalls) {
  for (const ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::constant}) {
    EXPECT_DOUBLE_EQ(learning_rate_share(with(kind), 99, 0.9), 1);
    EXPECT_DOUBLE_EQ(learning_rate_share(with(kind), 100, 0.9), 1);
    EXPECT_DOUBLE_EQ(learning_rate_share(with(kind), 49, 0.9), 0.5);
  }
  // A run whose limit comes within the first steps after the warm-up still ends where it should.
  EXPECT_NEAR(learning_rate_share(with(ScheduleKind::linear), 101, 1), 0, 1e-12);
}

TEST(Schedule, AConstantRateWithoutADecayStaysToTheEnd) {
  TrainConfig config = with(ScheduleKind::constant);
  config.decay_fraction = 0;
  EXPECT_DOUBLE_EQ(learning_rate_share(config, 2000, 1), 1);
  config.decay_fraction = 0.5;
  config.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate_share(config, 1000, 0.75), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_share(config, 1000, -1), 1);
}

}  // namespace calque

#include "calque/runs/distributed_config.h"

#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/runs/run_config.h"
#include "field_bounds.h"
#include "temporary_folder.h"

namespace calque {
namespace {

TEST(DistributedConfig, NumbersHaveTheirLimits) {
  DistributedConfig config;
  expect_bounds(fields(config), {{"local_steps", "1", "0"},
                                 {"outer_learning_rate", "0.001", "0"},
                                 {"outer_momentum", "0", "-0.1"},
                                 {"outer_momentum", "0.99", "1"},
                                 {"timeout_seconds", "0.1", "0"}});
}

TEST(DistributedConfig, RoundsOfLocalStepsEndWhereTheRunLooksAtItsWeights) {
  const TemporaryFolder folder;
  const auto file = folder.write("c.yaml", "distributed: {local_steps: 20}\ntrain: {warmup_steps: 1}\n");
  const auto refusal = [&](const std::string& override) {
    try {
      read_run_config(file,
                      {"train.steps=100", "train.validate_every=40", "train.checkpoint_every=0", override});
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal("train.steps=100"), "");
  EXPECT_NE(refusal("train.steps=90").find("train.steps=90 is not a multiple of distributed.local_steps=20"),
            std::string::npos);
  EXPECT_NE(refusal("train.validate_every=50").find("train.validate_every=50 is not"), std::string::npos);
  EXPECT_NE(refusal("train.checkpoint_every=50").find("train.checkpoint_every=50 is not"), std::string::npos);
  EXPECT_NE(refusal("train.ema_decay=0.9").find("exclude each other"), std::string::npos);
  EXPECT_EQ(refusal("distributed.local_steps=1"), "");
}

}  // namespace
}  // namespace calque

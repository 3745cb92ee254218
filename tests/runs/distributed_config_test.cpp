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
                                 {"timeout_seconds", "2", "1.9"}});
}

TEST(DistributedConfig, LocalStepsAndAveragedWeightsExcludeEachOther) {
  const TemporaryFolder folder;
  const auto file = folder.write("c.yaml", "distributed: {local_steps: 20}\ntrain: {ema_decay: 0.9}\n");
  EXPECT_THROW(read_run_config(file, {}), UserError);
  EXPECT_EQ(read_run_config(file, {"train.ema_decay=0"}).distributed.local_steps, 20);
  EXPECT_EQ(read_run_config(file, {"distributed.local_steps=1"}).train.ema_decay, 0.9);
}

}  // namespace
}  // namespace calque

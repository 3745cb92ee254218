// A folder for runs, and runs in it, for tests of the training loop.
#pragma once

#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/log.h"
#include "calque/train/training_loop.h"
#include "train/small_run.h"

namespace calque {

class TrainingTest : public testing::Test {
 protected:
  TrainingTest() { log::start(log::Verbosity::quiet); }

  TrainingResult run(const RunConfig& config, bool resume = false) {
    TrainingOptions options;
    options.runs = folder_ / "runs";
    options.resume = resume;
    return train(config, options);
  }
  std::string weights(const RunConfig& config) const {
    return read_file(folder_ / "runs" / config.run / "checkpoints/last/model.safetensors");
  }
  std::string refusal(const RunConfig& config, bool resume = false) {
    try {
      run(config, resume);
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  }

  std::string log_of(const RunConfig& config) const {
    return read_file(folder_ / "runs" / config.run / "log.txt");
  }

  TemporaryFolder folder_;
};

}  // namespace calque

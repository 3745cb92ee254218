// What can be known of a training run before it is started, without a run folder.
#pragma once

#include <nlohmann/json.hpp>

#include "calque/runs/run_config.h"
#include "calque/train/training_loop.h"

namespace calque {

struct TrainingEstimate {
  int64_t parameters = 0, embedding = 0, attention = 0, mlp = 0, norms = 0, output = 0;
  int64_t pairs = 0;
  double tokens_per_epoch = 0;
  int64_t steps_per_epoch = 0;
  double steps = 0;
  double tokens_per_second = 0;
  double minutes = 0;
  int64_t peak_bytes = 0;

  nlohmann::json to_json() const;
};

// From a few timed steps; writes nothing but the cache.
TrainingEstimate estimate_training(const RunConfig& config, const TrainingOptions& options);

}  // namespace calque

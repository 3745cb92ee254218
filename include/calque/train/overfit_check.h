// Can the model learn at all? Training on a single batch must bring its loss to almost zero.
#pragma once

#include <nlohmann/json.hpp>

#include "calque/runs/run_config.h"
#include "calque/train/training_loop.h"

namespace calque {

struct OverfitResult {
  bool overfitted = false;
  bool interrupted = false;
  double first_loss = 0, loss = 0;
  int64_t steps = 0;

  nlohmann::json to_json() const;
};

OverfitResult overfit_batch(const RunConfig& config, const TrainingOptions& options);

}  // namespace calque

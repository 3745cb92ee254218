// Limits: a run ends after a number of steps, epochs, tokens or minutes, whichever comes first.
#pragma once

#include <optional>
#include <string>

#include "calque/runs/train_config.h"
#include "calque/train/run_state.h"

namespace calque {

class Limits {
 public:
  explicit Limits(const TrainConfig& config) : config_(config) {}

  // How much of the run is over, by the nearest limit: 0 … 1 and more.
  double fraction_done(const TrainerState& state, double seconds) const;
  // The limit that is reached, as its key and value: "train.steps=1500".
  std::optional<std::string> reached(const TrainerState& state, double seconds) const;
  // The number of steps until the first limit, at a speed that was measured.
  double expected_steps(double steps_per_epoch, double tokens_per_step, double tokens_per_second) const;

 private:
  TrainConfig config_;
};

}  // namespace calque

// Schedule: the learning rate as a fraction of its peak.
#pragma once

#include "calque/runs/train_config.h"

namespace calque {

// step: updates made so far. progress: the fraction of the run that is over, by the nearest limit, in [0, 1].
double learning_rate_share(const TrainConfig& config, int64_t step, double progress);

}  // namespace calque

// Schedule: the learning rate as a share of its peak, from how many steps were made and how much of the run
// is over.
#pragma once

#include "calque/train/train_config.h"

namespace calque {

// step: updates made so far. progress: share of the run that is over, by whichever limit is nearest, in [0,
// 1].
double learning_rate_share(const TrainConfig& config, int64_t step, double progress);

}  // namespace calque

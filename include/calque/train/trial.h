// Trials: what can be known of a training before it is begun, without a run folder.
#pragma once

#include <nlohmann/json.hpp>

#include "calque/train/training.h"

namespace calque {

// Can the model learn at all? The first batch again and again, until it is known by heart.
TrainingResult overfit_batch(const RunConfig& config, const TrainingOptions& options);

// Parameters by part, tokens and steps of an epoch, time and memory, from a few timed steps; writes nothing
// but the cache.
nlohmann::json estimate_training(const RunConfig& config, const TrainingOptions& options);

}  // namespace calque

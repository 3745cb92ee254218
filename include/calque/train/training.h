// Training a run from its configuration: the one call behind `calque train`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "calque/train/run_config.h"

namespace calque {

struct TrainingOptions {
  std::filesystem::path runs = "runs";
  bool resume = false;
  bool fresh = false;
};

enum class TrainingEnd { limit, patience, interrupted, overfitted, not_overfitted };

struct TrainingResult {
  TrainingEnd end = TrainingEnd::limit;
  std::filesystem::path run;
  nlohmann::json summary;  // step, tokens, minutes, loss, valid_loss, best_valid_loss
};

TrainingResult train(const RunConfig& config, const TrainingOptions& options);

}  // namespace calque

// Comparison: several systems on one test set: their scores, how each differs from the first, and whether the
// difference is more than chance.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/train/evaluation.h"

namespace calque {

// One system: an evaluation, and what is known of how it came about. Translations by others have scores
// alone.
struct System {
  Evaluation evaluation;
  std::optional<std::filesystem::path> run;
  std::optional<RunConfig> config;
  int64_t parameters = 0;
  int64_t trained_parameters = 0;
  int64_t tokens_seen = 0;
  double minutes = 0;
};

struct Difference {
  size_t a = 0, b = 0;  // systems; a is the first
  double bleu = 0;      // b's less a's
  double p_bootstrap = 1, p_randomisation = 1;
};

struct Comparison {
  std::vector<System> systems;
  std::vector<Difference> differences;             // of each system to the first
  std::vector<std::vector<std::string>> settings;  // key, then each system's value: what they differ in
  std::string verdict;

  nlohmann::json to_json() const;
  std::string to_text() const;  // a table for people
};

inline constexpr double real_below = 0.05;  // a p-value from which on a difference counts as chance

Comparison compare_systems(std::vector<System> systems, uint32_t seed = default_resampling_seed);

// What a run's folder tells of how it was trained.
void describe_training(System& system);

}  // namespace calque

// Comparison: several systems on one test set: their scores, how each differs from the first, and whether the
// differences are statistically significant.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calque/runs/evaluation.h"

namespace calque {

// A system: an evaluation, and what is known of its training. Translations by others have scores alone.
struct System {
  Evaluation evaluation;
  std::optional<std::filesystem::path> run;
  std::optional<RunConfig> config;
  int64_t parameters = 0;
  int64_t trained_parameters = 0;
  int64_t tokens_seen = 0;
  double minutes = 0;
};

// How one metric differs between two systems.
struct MetricDifference {
  std::string key, name;  // bleu, BLEU
  double difference = 0;  // the second system's score minus the first's
  bool second_is_better = false;
  double p_bootstrap = 1, p_randomisation = 1;
};

struct Difference {
  size_t a = 0, b = 0;                    // indices of the systems; a is the first
  std::vector<MetricDifference> metrics;  // BLEU first

  const MetricDifference& bleu() const { return metrics.front(); }
};

struct Comparison {
  std::vector<System> systems;
  std::vector<Difference> differences;             // of each system to the first
  std::vector<std::vector<std::string>> settings;  // configuration keys that differ, with each system's value
  std::string verdict;

  nlohmann::json to_json() const;
  std::string to_text() const;  // a table for people
};

inline constexpr double significance_level = 0.05;

// The runs and checkpoints among the names; a file of translations has no source.
using SystemSources = std::vector<std::optional<ModelSource>>;
SystemSources find_systems(const std::filesystem::path& runs, const std::vector<std::string>& names);

// The test set of the runs' own configurations. Runs with different ones are a UserError that asks for one.
TestSet common_test_set(const SystemSources& sources);

using OpenTranslator = std::function<std::unique_ptr<Translator>(const ModelSource&)>;
std::vector<System> evaluate_systems(const std::vector<std::string>& names, const SystemSources& sources,
                                     const TestSet& test, const OpenTranslator& open);

Comparison compare_systems(std::vector<System> systems, uint32_t seed = default_resampling_seed);

// The default path of a comparison's page.
std::filesystem::path default_report_path(const std::filesystem::path& runs, const Comparison& comparison);

// Fills in what a run's folder tells of its training.
void describe_training(System& system);

}  // namespace calque

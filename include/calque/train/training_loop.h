// TrainingLoop: a run from its configuration, from the beginning or from where it stopped, to its end: the
// call behind `calque train` and `calque resume`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "calque/distributed/process_group.h"
#include "calque/runs/run_config.h"
#include "calque/train/run_state.h"

namespace calque {

struct TrainingOptions {
  std::filesystem::path runs = "runs";
  bool resume = false;
  bool fresh = false;
  std::string job = {};  // the launcher's name for this attempt and its restarts; the run remembers it
  std::shared_ptr<ProcessGroup> group = std::make_shared<ProcessGroup>();  // that trains it
  // The fraction of the run, by its nearest limit, at which it pauses: the schedule aims at the limit, and a
  // resumed run goes on as if it had never stopped.
  double pause_at = 1;
  std::function<void(const TrainerState& state, double run_seconds, double loss)> after_step = {};
  std::filesystem::path shared_cache = {};  // of runs that lie elsewhere; empty: runs/.cache

  std::filesystem::path cache() const { return shared_cache.empty() ? runs / ".cache" : shared_cache; }
};

enum class TrainingEnd { limit, patience, interrupted, paused };

struct TrainingResult {
  TrainingEnd end = TrainingEnd::limit;
  std::string reason;         // the limit that was reached: "train.steps=1500"
  std::filesystem::path run;  // its folder
  TrainerState trainer;
  RunState state;
  int64_t parameters = 0;
  int64_t trained_parameters = 0;
  bool has_validation = false, has_bleu = false;

  nlohmann::json to_json() const;
};

// `config` of a resumed run is its stored configuration, with what the user changed. All ranks call it with
// the same configuration; only rank 0 needs the run's folder, and each one the corpus.
TrainingResult train(const RunConfig& config, const TrainingOptions& options);

}  // namespace calque

// Tuner: searches for good settings by successive halving: the call behind `calque tune`. Each trial is a run
// that pauses at the end of a rung and, if it is among the better half, goes on.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "calque/train/tune_folder.h"

namespace calque {

struct TuneResult {
  bool interrupted;
  std::filesystem::path folder;
  std::filesystem::path best, report;  // files
  TuneState state;

  nlohmann::json to_json() const;
};

TuneResult tune(const TuneOptions& options);

// The configuration of a trial as the search trains it: with the budget of the last rung as its only limit,
// so that the schedule is that of a full training, and without validations of its own.
RunConfig trial_config(RunConfig config, const Trial& trial, const Rung& last, BudgetUnit unit);

// The configuration of the best trial, for a training of its own that takes as long as the given one: a limit
// in steps, tokens or epochs is scaled by the speeds of the two trials.
RunConfig tuned_config(RunConfig found, const TrialResult& best, const TrialResult& given, BudgetUnit unit);

}  // namespace calque

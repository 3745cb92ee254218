// TuneState: the trials of a search and how far each has come, as search.json in its folder keeps them. Which
// trials go on follows from the recorded results alone, so that a search continues where it was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calque/train/halving.h"

namespace calque {

// A trial at the end of a rung.
struct TrialResult {
  double bits_per_byte = 0;    // of the validation references
  double tokens_per_byte = 0;  // of the same, by the trial's tokenizer
  int64_t step = 0, tokens = 0;
  double epochs = 0, seconds = 0;

  double amount(BudgetUnit unit) const {
    return unit == BudgetUnit::seconds ? seconds : static_cast<double>(step);
  }

  nlohmann::json to_json() const;
  static TrialResult from_json(const nlohmann::json& json);
};

struct Trial {
  int64_t number = 0;                 // 0: the configuration as it was given
  std::vector<std::string> settings;  // overrides of the configuration
  std::string failure;                // empty: none
  std::vector<TrialResult> results;   // one per rung that it has finished

  std::string name() const;           // of its folder: trial-03
  std::string settings_text() const;  // for people, without the sections
  nlohmann::json to_json() const;
  static Trial from_json(const nlohmann::json& json);
};

struct TuneState {
  BudgetUnit unit = BudgetUnit::seconds;
  double total = 0;  // of all trials, in `unit`
  int64_t seed = 1;
  std::vector<Trial> trials;

  std::vector<Rung> rungs() const { return plan_halving(static_cast<int64_t>(trials.size()), total, unit); }
  // The trials that take part in a rung, if the rungs before it are complete: indices, by number in the
  // first, by rank later.
  std::vector<size_t> contenders(size_t rung) const;
  bool is_complete(size_t rung) const;
  size_t complete_rungs() const;
  bool is_dropped(size_t trial) const;  // it takes part in no further rung, though it did not fail
  std::vector<size_t> ranking() const;  // the best first, the failed last
  std::optional<size_t> best() const;   // nothing if no trial has a result

  // For people: a heading and a line per trial, by rank. `note`: what to say of the trial that is training.
  std::vector<std::string> table(std::optional<size_t> training = {}, const std::string& note = "") const;

  nlohmann::json to_json() const;
  static TuneState from_json(const nlohmann::json& json);
};

}  // namespace calque

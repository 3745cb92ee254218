// TuneFolder: runs/NAME of a search: search.json (the trials and their results), space.yaml, configs/ with
// the configuration of each trial, one run per trial, best.yaml and report.html. It appears complete, and an
// existing search is never overwritten.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "calque/runs/folder_lock.h"
#include "calque/runs/run_config.h"
#include "calque/train/tune_state.h"

namespace calque {

struct TuneOptions {
  std::filesystem::path runs = "runs";
  std::filesystem::path config;
  std::vector<std::string> overrides;
  std::optional<double> minutes;  // of training, over all trials; or
  std::optional<int64_t> steps;   // of all trials together
  std::optional<int64_t> trials, seed;
  std::filesystem::path space;  // empty: default_space()
  bool resume = false, fresh = false;

  static constexpr int64_t default_trials = 16, default_seed = 1;
};

class TuneFolder {
 public:
  // Makes the folder, or opens it on resume: then options that differ from the search's are refused.
  explicit TuneFolder(const TuneOptions& options);

  // Of a trial: the given configuration with its settings.
  RunConfig config(const Trial& trial) const;
  void save() const;  // search.json

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path run(const Trial& trial) const { return path_ / trial.name(); }
  std::filesystem::path best() const { return path_ / "best.yaml"; }
  std::filesystem::path report() const { return path_ / "report.html"; }

  TuneState state;

 private:
  void create(const TuneOptions& options, const RunConfig& base);
  void open(const TuneOptions& options, const RunConfig& base);
  std::filesystem::path config_file(const Trial& trial) const;

  std::filesystem::path path_;
  std::optional<FolderLock> lock_;
};

}  // namespace calque

// RunList: the runs and searches in a folder, and what its cache holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace calque {

struct RunSummary {
  std::string name;
  std::string state;  // done, interrupted, paused, training, stopped, search (of `calque tune`), or empty
  int64_t step = 0;
  std::optional<double> bleu = {};  // of the run's own test set, else of the newest evaluation, else the best
                                    // at a validation
  std::optional<std::string> bleu_on = {};  // the name of the test set, or "validation"
  int64_t bytes = 0;
  double age_seconds = 0;  // since the last change

  nlohmann::json to_json() const;
};

// The evaluation by which a run is listed: of its own test set, or else the newest.
struct ShownEvaluation {
  std::string test_set;
  double bleu = 0;
  int64_t sentences = 0;
};
std::optional<ShownEvaluation> shown_evaluation(const std::filesystem::path& run);

std::vector<RunSummary> list_runs(const std::filesystem::path& runs);  // the newest first
std::string runs_table(const std::vector<RunSummary>& runs);

// Deletes a run at once: it is moved away, then removed. One that is being trained is refused.
void remove_run(const std::filesystem::path& runs, const std::string& name);

// Writes a run into one compressed file, complete or not at all, and returns its size; the run stays.
int64_t archive_run(const std::filesystem::path& runs, const std::string& name,
                    const std::filesystem::path& file);
// Unpacks such a file and returns the run's name. An existing run of that name is not touched: an error.
std::string restore_run(const std::filesystem::path& runs, const std::filesystem::path& file);

struct CachedFile {
  std::filesystem::path path;
  int64_t bytes = 0;
  double age_seconds = 0;  // since it was used last
};
std::vector<CachedFile> list_cache(const std::filesystem::path& cache);  // the oldest first
// Deletes what was not used for so long, and returns it.
std::vector<CachedFile> prune_cache(const std::filesystem::path& cache, double older_than_seconds);

}  // namespace calque

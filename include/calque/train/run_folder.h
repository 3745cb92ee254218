// RunFolder: runs/NAME, which explains itself: the resolved configuration, the tokenizer, checkpoints,
// metrics, the log and a report. A run that exists is never overwritten, and two processes never train the
// same one.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace calque {

class RunFolder {
 public:
  enum class Mode { create, resume, fresh };

  // create: refuses a run that has begun. resume: refuses one that has not. fresh: takes either; clear()
  // empties it.
  RunFolder(std::filesystem::path path, Mode mode);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  void clear();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.yaml"; }
  std::filesystem::path tokenizer() const {  // of whichever kind it has
    return std::filesystem::exists(path_ / "tokenizer.json") ? path_ / "tokenizer.json"
                                                             : path_ / "tokenizer.model";
  }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path log() const { return path_ / "log.txt"; }
  std::filesystem::path report() const { return path_ / "report.html"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path checkpoint(const std::string& name) const {
    return checkpoints() / name;
  }  // last, best, step-N

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

// Appends a line to metrics.jsonl at once; lines of steps after `step` can be taken back, when a run resumes
// earlier.
void append_metrics(const std::filesystem::path& path, const nlohmann::json& line);
std::vector<nlohmann::json> read_metrics(const std::filesystem::path& path);
void drop_metrics_after(const std::filesystem::path& path, int64_t step);

}  // namespace calque

// RunFolder: runs/NAME, with the resolved configuration, the tokenizer, checkpoints, metrics, the log and a
// report. An existing run is never overwritten, and two processes never train the same one.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calque/runs/folder_lock.h"

namespace calque {

class RunFolder {
 public:
  enum class Mode { create, resume, fresh };

  // create: refuses a run that exists. resume: refuses one that does not. fresh: takes either; clear()
  // empties it.
  RunFolder(std::filesystem::path path, Mode mode);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // Empties the run. What it held is moved away at once and then deleted, so that an interruption never
  // leaves half of it.
  void clear();
  // A random name for this run, made at its start: its checkpoints carry it.
  std::string id() const;
  // The job of a launcher that started the run; empty: none.
  std::filesystem::path job() const { return path_ / "job"; }
  // From here on the folder is kept. Otherwise the destructor removes one that this object created.
  void keep();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.yaml"; }
  std::filesystem::path tokenizer() const {  // of whichever kind it has
    return std::filesystem::exists(path_ / "tokenizer.json") ? path_ / "tokenizer.json"
                                                             : path_ / "tokenizer.model";
  }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path log() const { return path_ / "log.txt"; }
  bool has_checkpoints() const;
  std::filesystem::path report() const { return path_ / "report.html"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path checkpoint(const std::string& name) const {
    return checkpoints() / name;
  }  // last, best, step-N

 private:
  std::filesystem::path path_;
  void open_folder();

  std::optional<FolderLock> lock_;
  bool created_ = false;
};

// Appends a line to metrics.jsonl.
void append_metrics(const std::filesystem::path& path, const nlohmann::json& line);
// Flushes what was appended to disk (fsync).
void flush_metrics(const std::filesystem::path& path);
std::vector<nlohmann::json> read_metrics(const std::filesystem::path& path);
// Removes what a killed run wrote after the checkpoint that it resumes from: lines of later steps, and
// validations later than `validated_step`.
void trim_metrics(const std::filesystem::path& path, int64_t step, int64_t validated_step);

}  // namespace calque

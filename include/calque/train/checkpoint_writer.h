// CheckpointWriter: writes a run's checkpoints step-N in the background. `last` and `best` hold the models of
// two of them.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "calque/checkpoint/checkpoint.h"
#include "calque/runs/run_folder.h"

namespace calque {

// The checkpoints step-N of a run, the newest first.
std::vector<std::pair<int64_t, std::filesystem::path>> list_checkpoints(
    const std::filesystem::path& checkpoints);

// The newest checkpoint of the run that is intact. Nothing if there is none at all; if there are some and
// none can be used, a UserError that says why each was refused.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& checkpoints,
                                            const std::string& run_id);

// Writes one checkpoint at a time on a thread of its own, keeps `last` and `best` up to date, and deletes old
// ones. A failure is thrown by the next call. The run's metrics are flushed before a checkpoint has its name:
// after a power failure, the lines of the steps before it are there.
class CheckpointWriter {
 public:
  CheckpointWriter(const RunFolder& run, int64_t keep);
  ~CheckpointWriter();

  // As step-N, after the one before it is written.
  void write(int64_t step, CheckpointContent content, bool best);
  // Makes `name`, best or last, the model of a checkpoint that is written already, if it is not.
  void mark(const std::string& name, int64_t step);
  void finish();  // waits until everything is on disk

 private:
  void store(int64_t step, const CheckpointContent& content, bool best) const;

  std::filesystem::path folder_, metrics_;
  int64_t keep_;
  std::thread thread_;
  std::exception_ptr failure_;
};

}  // namespace calque

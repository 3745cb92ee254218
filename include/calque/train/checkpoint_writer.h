// CheckpointWriter: a run's checkpoints step-N, written beside the training, with `last` and `best` pointing
// at two of them.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "calque/convert/checkpoint.h"

namespace calque {

// The checkpoints step-N of a run, the newest first; folders of any other name are not ours.
std::vector<std::pair<int64_t, std::filesystem::path>> list_checkpoints(
    const std::filesystem::path& checkpoints);

// Writes checkpoints of a run on a thread of its own, one at a time, points `last` and `best` at them, and
// deletes those that are neither new nor best. A failure comes out at the next call.
class CheckpointWriter {
 public:
  CheckpointWriter(std::filesystem::path checkpoints, int64_t keep);
  ~CheckpointWriter();

  // As step-N; waits until the one before it is written.
  void write(int64_t step, CheckpointContent content, bool best);
  void mark_best(int64_t step);  // points `best` at a checkpoint that is written already
  void finish();                 // waits until everything is on the disk

 private:
  void store(int64_t step, const CheckpointContent& content, bool best) const;

  std::filesystem::path folder_;
  int64_t keep_;
  std::thread thread_;
  std::exception_ptr failure_;
};

}  // namespace calque

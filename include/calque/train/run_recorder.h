// RunRecorder: what a training run leaves on disk: its folder with the configuration, the tokenizer, the base
// model below adapters, metrics, checkpoints, the log and a report. Of several ranks, only the first has one.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calque/checkpoint/checkpoint.h"
#include "calque/data/tokenizer.h"
#include "calque/runs/run_config.h"
#include "calque/runs/run_folder.h"
#include "calque/train/checkpoint_writer.h"
#include "calque/train/metrics_log.h"
#include "calque/train/resume_check.h"
#include "calque/train/run_state.h"
#include "calque/train/trainer.h"
#include "calque/train/training_loop.h"

namespace calque {

class RunRecorder {
 public:
  // Opens the run's folder: a new one, or the one to continue.
  RunRecorder(const RunConfig& config, const TrainingOptions& options);

  const RunFolder& folder() const { return folder_; }
  // Before a run is resumed: finds its newest checkpoint that is intact, and says which keys of the run's
  // configuration have been edited since. What cannot change on resume is refused.
  std::vector<ConfigChange> check_edited();
  // The newest checkpoint that is intact and was trained with this tokenizer; none: the run was stopped
  // before its first.
  std::optional<Checkpoint> newest_checkpoint(const TrainConfig& config, const Tokenizer& tokenizer) const;
  // After a restart: a kill may have come between the checkpoint and its links.
  void restore_links(const RunState& state, int64_t step);

  // From here on the run exists. Sets what the run's checkpoints carry: run_id and config.
  void start(const RunConfig& config, const Tokenizer& tokenizer, RunState& state);
  // Metrics after the state's step are removed, which a killed run may have left.
  void start_metrics(const RunConfig& config, const Trainer& trainer, const RunState& state);
  MetricsLog& metrics() { return *metrics_; }

  void save(int64_t step, CheckpointContent content, bool best);
  void finish_saving() { writer_.finish(); }
  // Once everything is saved. `best`: a step whose model becomes the best one, or -1.
  void finish(const RunConfig& config, const TrainingResult& result, int64_t best);

 private:
  void check_never_saved(const TrainConfig& config) const;
  void keep_base(const std::filesystem::path& init_from);

  TrainingOptions options_;
  RunFolder folder_;
  CheckpointWriter writer_;
  std::optional<Checkpoint> newest_;  // once check_edited() has looked
  std::unique_ptr<MetricsLog> metrics_;
};

}  // namespace calque

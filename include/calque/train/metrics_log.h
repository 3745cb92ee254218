// MetricsLog: what a run reports while it trains: lines of metrics.jsonl, TensorBoard scalars, and a progress
// line with speed and remaining time for the person who watches.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "calque/model/decoder.h"
#include "calque/runs/run_config.h"
#include "calque/runs/run_folder.h"
#include "calque/train/event_file.h"
#include "calque/train/trainer.h"

namespace calque {

class MetricsLog {
 public:
  // Drops the lines after `state.step` that a run left behind which was killed later.
  MetricsLog(const RunFolder& folder, const RunConfig& config, const Decoder& decoder,
             const TrainerState& state, const RunState& run, int ranks = 1);

  struct Step {
    const StepResult& result;  // of one step, or of a round of local steps
    double learning_rate;
    double step_seconds, waited_seconds;  // computing, and waiting for the batch
    double fraction_done, run_seconds;
    double communication_seconds = 0;  // of step_seconds: waiting for other ranks
  };
  void record_step(const Step& step, const TrainerState& state);
  void record(const TrainerState& state, double run_seconds, const nlohmann::json& values);
  // For people, about the steps since the last line of metrics.
  std::string progress_line(const Step& step, const TrainerState& state) const;

 private:
  void append(const nlohmann::json& line);
  double window_speed() const;
  double fraction_of_limit() const;

  std::filesystem::path file_;
  const TrainConfig config_;
  int ranks_;
  const Decoder& decoder_;
  double limit_flops_;  // of the matrix products of all ranks, which are taken to be alike
  std::unique_ptr<EventFile> events_;
  struct {
    double loss = 0, labels = 0, tokens = 0, seconds = 0, waited = 0, communication = 0;
  } window_;             // since the last line
  int64_t logged_step_;  // of the last line
  std::chrono::steady_clock::time_point last_live_line_, last_plain_line_;
};

}  // namespace calque

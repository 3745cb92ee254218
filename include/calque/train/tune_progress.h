// TuneProgress: what a search shows while it runs: on a terminal a live table of its trials, elsewhere a line
// per result and every half minute, with the remaining time.
#pragma once

#include <chrono>
#include <string>

#include "calque/base/live_table.h"
#include "calque/base/quiet_log.h"
#include "calque/train/run_state.h"
#include "calque/train/tune_state.h"

namespace calque {

class TuneProgress {
 public:
  TuneProgress(const TuneState& state, std::string name) : state_(state), name_(std::move(name)) {}

  struct Step {
    size_t trial = 0, rung = 0;  // indices
    const TrainerState& at;
    double seconds = 0;  // of the trial's training
    double loss = 0;
  };
  void show(const Step& step, QuietLog& quiet);

  // A rung of a trial took so long, `trained_seconds` of it in `trained_steps` of training.
  void record(double seconds, double trained_seconds, double trained_steps);
  void report(const Trial& trial, size_t rung);  // its newest result
  void clear() { table_.clear(); }               // before a message

  // Of training, and of what surrounds it, at the speed so far. `seconds` and `steps`: what the trial that is
  // training has done of its rung.
  double seconds_left(double seconds, double steps) const;

 private:
  using Clock = std::chrono::steady_clock;

  const TuneState& state_;
  std::string name_;
  LiveTable table_;
  Clock::time_point shown_ = Clock::now();
  double trained_seconds_ = 0, trained_steps_ = 0, other_seconds_ = 0, recorded_ = 0;
};

}  // namespace calque

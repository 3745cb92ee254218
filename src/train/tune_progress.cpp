#include "calque/train/tune_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "calque/base/log.h"
#include "calque/base/units.h"

namespace calque {
namespace {

constexpr double table_seconds = 0.2;  // mutate: how often it is drawn
constexpr double note_seconds = 30;    // mutate: how often a line is shown

}  // namespace

void TuneProgress::show(const Step& step, QuietLog& quiet) {
  const bool live = table_.visible();
  if (std::chrono::duration<double>(Clock::now() - shown_).count() < (live ? table_seconds : note_seconds))
    return;
  shown_ = Clock::now();
  const Trial& trial = state_.trials[step.trial];
  const auto steps = static_cast<double>(step.at.step);
  const TrialResult before = trial.results.empty() ? TrialResult{} : trial.results.back();
  const double left = seconds_left(step.seconds - before.seconds, steps - static_cast<double>(before.step));
  const std::string heading = fmt::format("{} · rung {} of {} · {} left · trial {}: step {}, loss {:.3f}",
                                          name_, step.rung + 1, state_.rungs().size(), format_seconds(left),
                                          trial.number, format_count(step.at.step), step.loss);
  if (!live) return quiet.say(heading);
  auto lines = state_.table(
      step.trial, budget_text(state_.unit == BudgetUnit::seconds ? step.seconds : steps, state_.unit));
  lines.insert(lines.begin(), heading);
  table_.show(lines);
}

void TuneProgress::record(double seconds, double trained_seconds, double trained_steps) {
  trained_seconds_ += trained_seconds;
  trained_steps_ += trained_steps;
  // What was trained before a kill counts as trained, but took no time here.
  other_seconds_ += std::max(0.0, seconds - trained_seconds);
  ++recorded_;
}

void TuneProgress::report(const Trial& trial, size_t rung) {
  if (table_.visible()) return;
  const TrialResult& result = trial.results.back();
  const Trial& best = state_.trials[*state_.best()];
  const double left = seconds_left(0, 0);
  log::info(
      "trial {}, rung {} of {}: {:.4f} bits per byte after {} steps, {}; the best is {:.4f} (trial {}){}",
      trial.number, rung + 1, state_.rungs().size(), result.bits_per_byte, format_count(result.step),
      format_seconds(result.seconds), best.results.back().bits_per_byte, best.number,
      left > 0 ? "; " + format_seconds(left) + " left" : "");
}

double TuneProgress::seconds_left(double seconds, double steps) const {
  const auto rungs = state_.rungs();
  const size_t current = state_.complete_rungs();
  const bool by_time = state_.unit == BudgetUnit::seconds;
  double budget = by_time ? -seconds : -steps, trainings = 0;
  for (size_t rung = current; rung < rungs.size(); ++rung) {
    auto count = static_cast<double>(rungs[rung].trials);
    if (rung == current) {
      const auto all = state_.contenders(rung);
      count = static_cast<double>(std::count_if(all.begin(), all.end(), [&](size_t i) {
        return state_.trials[i].results.size() <= rung && state_.trials[i].failure.empty();
      }));
    }
    budget += count * (rungs[rung].budget - (rung > 0 ? rungs[rung - 1].budget : 0));
    trainings += count;
  }
  const double all_steps = trained_steps_ + steps;
  const double seconds_per_step = all_steps > 0 ? (trained_seconds_ + seconds) / all_steps : 0;
  return std::max(0.0, budget) * (by_time ? 1 : seconds_per_step) +
         (recorded_ > 0 ? other_seconds_ / recorded_ * trainings : 0);
}

}  // namespace calque

#include "calque/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace calque {

double learning_rate_share(const TrainConfig& c, int64_t step, double progress) {
  const auto warmup = static_cast<double>(c.warmup_steps);
  const double rise = step < c.warmup_steps ? static_cast<double>(step + 1) / warmup : 1.0;
  progress = std::clamp(progress, 0.0, 1.0);
  // The decay begins when the warm-up ends. The fraction of the run that the warm-up took follows from the
  // steps made, so that this holds for limits in tokens or minutes too.
  if (step > c.warmup_steps) {
    const double warmup_share = std::min(progress * warmup / static_cast<double>(step), 0.999);
    progress = (progress - warmup_share) / (1 - warmup_share);
  } else {
    progress = 0;
  }
  double fall = 1.0;
  switch (c.schedule) {
    case ScheduleKind::cosine:
      fall = 0.5 * (1 + std::cos(std::numbers::pi * progress));
      break;
    case ScheduleKind::linear:
      fall = 1 - progress;
      break;
    case ScheduleKind::inverse_sqrt:
      fall = std::sqrt(std::max(warmup, 1.0) / std::max({warmup, static_cast<double>(step + 1), 1.0}));
      break;
    case ScheduleKind::constant:
      fall = c.decay_fraction > 0 ? std::min(1.0, (1 - progress) / c.decay_fraction) : 1.0;
      break;
  }
  if (c.schedule == ScheduleKind::inverse_sqrt) return rise * std::max(fall, c.final_lr_fraction);
  return rise * (c.final_lr_fraction + (1 - c.final_lr_fraction) * fall);
}

}  // namespace calque

#include "calque/train/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "calque/base/units.h"

namespace calque {
namespace {

struct Limit {
  const char* key;
  double value, reached;
};

// Those that are set, and how far each is.
std::vector<Limit> set_limits(const TrainConfig& c, const TrainerState& state, double seconds) {
  std::vector<Limit> all = {{"steps", static_cast<double>(c.steps), static_cast<double>(state.step)},
                            {"epochs", c.epochs, state.epochs()},
                            {"tokens", static_cast<double>(c.tokens), static_cast<double>(state.tokens)},
                            {"minutes", c.minutes.value, seconds / 60}};
  std::erase_if(all, [](const Limit& limit) { return limit.value <= 0; });
  return all;
}

}  // namespace

double Limits::fraction_done(const TrainerState& state, double seconds) const {
  double fraction = 0;
  for (const Limit& limit : set_limits(config_, state, seconds))
    fraction = std::max(fraction, limit.reached / limit.value);
  return fraction;
}

std::optional<std::string> Limits::reached(const TrainerState& state, double seconds) const {
  for (const Limit& limit : set_limits(config_, state, seconds)) {
    if (limit.reached >= limit.value)
      return fmt::format("train.{}={}", limit.key, format_shortest(limit.value));
  }
  return std::nullopt;
}

double Limits::expected_steps(double steps_per_epoch, double tokens_per_step,
                              double tokens_per_second) const {
  double steps = std::numeric_limits<double>::max();
  if (config_.steps > 0) steps = std::min(steps, static_cast<double>(config_.steps));
  if (config_.epochs > 0) steps = std::min(steps, config_.epochs * steps_per_epoch);
  if (config_.tokens > 0) steps = std::min(steps, static_cast<double>(config_.tokens) / tokens_per_step);
  if (config_.minutes.value > 0)
    steps = std::min(steps, config_.minutes.value * 60 * tokens_per_second / tokens_per_step);
  return steps;
}

}  // namespace calque

#include "calque/train/thread_scaling.h"

#include <algorithm>

#include "calque/train/bench.h"

namespace calque {

using nlohmann::json;

double ThreadScaling::tokens_per_second(int64_t threads) const {
  double seconds = 0;
  for (const auto& [name, part] : parts)
    seconds += part.serial + part.parallel / static_cast<double>(threads);
  return 1 / seconds;
}

double ThreadScaling::serial_share(const std::string& part) const {
  return parts.at(part).serial * tokens_per_second(1);
}

double ThreadScaling::serial_share() const {
  double share = 0;
  for (const auto& [name, part] : parts) share += serial_share(name);
  return share;
}

json ThreadScaling::to_json() const {
  json result = {{"precision", precision}, {"serial_share", serial_share()}};
  for (const auto& [name, part] : parts) result["serial_parts"][name] = serial_share(name);
  for (const int64_t threads : scaling_threads) result["speedup"][std::to_string(threads)] = speedup(threads);
  return result;
}

// Of a part that takes `one` seconds on one thread and `several` on n, s is serial where
// several = s + (one - s) / n.
ThreadScaling fit_scaling(const TrainBenchRow& one_thread, const TrainBenchRow& several_threads) {
  const auto n = static_cast<double>(several_threads.threads);
  ThreadScaling scaling;
  scaling.precision = one_thread.precision;
  for (const auto& [name, share] : one_thread.breakdown) {
    const double one = share / one_thread.tokens_per_second;
    const double several = several_threads.breakdown.at(name) / several_threads.tokens_per_second;
    const double serial = std::clamp((n * several - one) / (n - 1), 0.0, one);
    scaling.parts[name] = {serial, one - serial};
  }
  return scaling;
}

std::vector<ThreadScaling> fit_scaling(const std::vector<TrainBenchRow>& rows) {
  std::vector<ThreadScaling> all;
  for (const TrainBenchRow& one : rows) {
    const TrainBenchRow* several = nullptr;
    for (const TrainBenchRow& row : rows) {
      if (row.precision == one.precision && row.busy == 0 && row.threads > one.threads &&
          (several == nullptr || row.threads > several->threads))
        several = &row;
    }
    if (one.threads == 1 && one.busy == 0 && several != nullptr) all.push_back(fit_scaling(one, *several));
  }
  return all;
}

}  // namespace calque

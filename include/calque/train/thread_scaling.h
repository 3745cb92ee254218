// ThreadScaling: Amdahl's law for each part of a training step, fitted to the same steps on one thread and on
// several: what more threads would give, and which parts would hold them up. Whatever does not get faster
// counts as serial, so memory bandwidth and a lower clock of all cores together do too.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace calque {

struct TrainBenchRow;

struct ThreadScaling {
  struct Part {
    double serial = 0, parallel = 0;  // seconds per token on one thread
  };
  std::string precision;
  std::map<std::string, Part> parts;

  double tokens_per_second(int64_t threads) const;
  double speedup(int64_t threads) const { return tokens_per_second(threads) / tokens_per_second(1); }
  double serial_share(const std::string& part) const;  // of the whole time on one thread
  double serial_share() const;

  nlohmann::json to_json() const;
};

constexpr int64_t scaling_threads[] = {1, 2, 4, 8, 16, 32, 64};

ThreadScaling fit_scaling(const TrainBenchRow& one_thread, const TrainBenchRow& several_threads);

// One per precision that was measured on one thread and on more, with nothing beside it.
std::vector<ThreadScaling> fit_scaling(const std::vector<TrainBenchRow>& rows);

}  // namespace calque

// RankBench: what a training step costs each of several ranks: `calque launch -n N bench train`.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "calque/distributed/process_group.h"
#include "calque/runs/run_config.h"
#include "calque/train/bench.h"

namespace calque {

struct RankBench {
  struct Rank {
    int64_t optimizer_state_bytes = 0;
    double optimizer_seconds = 0;      // per step: its own updates
    double communication_seconds = 0;  // per step: waiting for other ranks
  };
  std::vector<Rank> ranks;
  int64_t parameters = 0;
  double tokens_per_second = 0;  // of all ranks together
  double step_seconds = 0;

  nlohmann::json to_json() const;
};

// All ranks call it, and get the same.
RankBench bench_ranks(const RunConfig& config, const TrainBenchOptions& options,
                      const std::shared_ptr<ProcessGroup>& group);

}  // namespace calque

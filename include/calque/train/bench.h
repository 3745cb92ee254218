// Benchmarks: how fast a model trains and translates here, beside what this machine's matrix products allow.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/train/evaluation.h"
#include "calque/train/model_source.h"
#include "calque/train/run_config.h"

namespace calque {

struct TrainBenchOptions {
  std::filesystem::path cache;
  double seconds = 20;           // of timed steps, for each row
  std::vector<int64_t> threads;  // empty: one, and all
};

// {"limit_gflops": {"float32", "bfloat16"}, "train": [{"precision", "threads", "tokens_per_second",
// "pairs_per_second", "flops_per_token", "limit_gflops", "share_of_limit", "peak_bytes", "breakdown": {part:
// share of the time}}]}. A row's own limit was measured between its steps; the first two are the last row's.
nlohmann::json bench_training(const RunConfig& config, const TrainBenchOptions& options);

struct DecodeBenchOptions {
  int64_t sentences = 1000;  // of the test set, spread over it
  int64_t alone = 100;       // of these, one by one
  int64_t threads = 0;
};

// {"decode": [{"precision", "beam", "batch", "sentences_per_second", "tokens_per_second", "peak_bytes"}]}
nlohmann::json bench_decoding(const ModelSource& source, const TestSet& test,
                              const DecodeBenchOptions& options);

}  // namespace calque

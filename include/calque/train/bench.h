// Benchmarks: training and translation speed on this machine, beside the speed of its matrix products.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/runs/evaluation.h"
#include "calque/runs/model_source.h"
#include "calque/runs/run_config.h"
#include "calque/train/thread_scaling.h"

namespace calque {

struct TrainBenchOptions {
  std::filesystem::path cache;
  double seconds = 20;           // of timed steps per row
  std::vector<int64_t> threads;  // empty: one, and all
  int64_t busy = 0;              // also beside this many processes that use all the processor they get
  int64_t busy_nice = 0;
};

struct TrainBenchRow {
  std::string precision;
  int64_t threads = 0;
  double tokens_per_second = 0, pairs_per_second = 0;
  double flops_per_token = 0;
  double limit_gflops = 0;  // of the matrix products, measured between the steps
  double share_of_limit = 0;
  int64_t peak_bytes = 0;
  int64_t busy = 0;            // processes beside it
  double cpu_share = 0;        // of the time of its threads that they were running
  double busy_efficiency = 1;  // speed, relative to the quiet speed times the share of the processor
  std::map<std::string, double> breakdown;  // share of the time by kind of work

  nlohmann::json to_json() const;
};

struct TrainBench {
  std::vector<TrainBenchRow> rows;
  std::map<std::string, double> limit_gflops;  // by precision, of the last row
  std::vector<ThreadScaling> scaling;          // where one thread and more were measured

  nlohmann::json to_json() const;
};
TrainBench bench_training(const RunConfig& config, const TrainBenchOptions& options);

struct DecodeBenchOptions {
  int64_t sentences = 1000;  // of the test set, spread over it
  int64_t single = 100;      // how many of these are translated one by one
  int64_t threads = 0;
  torch::Device device = torch::kCPU;
  int64_t busy = 0, busy_nice = 0;  // as in training; only int8, quiet and beside them
};

struct DecodeBenchRow {
  std::string precision;
  int64_t beam = 0, batch = 0;
  double sentences_per_second = 0, tokens_per_second = 0;
  int64_t peak_bytes = 0;
  int64_t busy = 0;
  double cpu_share = 0, busy_efficiency = 1;

  nlohmann::json to_json() const;
};

struct DecodeBench {
  std::vector<DecodeBenchRow> rows;
  double first_translation_seconds = 0;  // from starting a process

  nlohmann::json to_json() const;
};
DecodeBench bench_decoding(const ModelSource& source, const TestSet& test, const DecodeBenchOptions& options);

}  // namespace calque

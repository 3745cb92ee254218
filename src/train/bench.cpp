#include "calque/train/bench.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "calque/base/file.h"
#include "calque/base/progress.h"
#include "calque/data/prefetcher.h"
#include "calque/kernels/threads.h"
#include "calque/train/busy_processes.h"
#include "calque/train/matrix_speed.h"
#include "calque/train/part_times.h"
#include "calque/train/run_setup.h"
#include "calque/train/trainer.h"

namespace calque {
namespace {

using nlohmann::json;
using BenchClock = std::chrono::steady_clock;

double since(BenchClock::time_point start) {
  return std::chrono::duration<double>(BenchClock::now() - start).count();
}

// Linux keeps the peak memory of a process, and can reset it.
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    int64_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;  // mutate: only where there is no /proc
}

// Sentences one by one, or in batches as the configuration says.
void time_decoding(const Translator& translator, const std::vector<std::string>& sentences, bool single,
                   DecodeBenchRow& row) {
  int64_t tokens = 0;
  Progress progress(
      fmt::format("beam {}, {}", translator.config().beam, single ? "one by one" : "in batches"),
      static_cast<int64_t>(sentences.size()), "sentences");  // mutate: shown only
  const auto count = [&](const Translation& translation) {
    for (const Hypothesis& part : translation.best.front().parts)
      tokens += static_cast<int64_t>(part.tokens.size()) + 1;
  };
  translator.translate(sentences.front());  // mutate: speed; the first one allocates
  reset_peak();
  const auto start = BenchClock::now();
  const double used = processor_seconds();
  if (single) {
    for (const std::string& sentence : sentences) {
      count(translator.translate(sentence));
      progress.advance(1);  // mutate: shown only
    }
  } else {
    for (const Translation& one :
         translator.translate_all(sentences, [&](int64_t n) { progress.advance(n); }))
      count(one);
  }
  const double seconds = since(start);
  row.sentences_per_second = static_cast<double>(sentences.size()) / seconds;
  row.tokens_per_second = static_cast<double>(tokens) / seconds;
  row.peak_bytes = peak_bytes();
  row.cpu_share = (processor_seconds() - used) / (seconds * num_threads());
}

// How well the share of the processor was used, beside what it gives when there is all of it.
template <class Row>
void compare_with_quiet(Row& row, double speed, const Row& quiet, double quiet_speed) {
  row.busy_efficiency = speed / quiet_speed / (row.cpu_share / quiet.cpu_share);
}

// The machine's limit is measured between the steps, for an eighth of the time, so that both are averages
// over the same seconds: other load on the machine affects both alike.
TrainBenchRow time_training(const RunConfig& config, const TrainBenchOptions& options, int64_t threads,
                            MatrixSpeed& limit) {
  set_num_threads(threads);
  keep_freed_memory();  // mutate: speed
  DataCache cache(options.cache, num_threads());
  const torch::Device device = training_device(config.train);
  const Tokenizer tokenizer = choose_tokenizer(config, cache);
  reset_peak();
  Trainer trainer(make_model(config, tokenizer, device), config.train, static_cast<uint64_t>(config.seed),
                  device, config.finetune);
  BatchStream stream(stream_options(config), tokenizer, cache, 0, 0);
  for (int i = 0; i < 2; ++i)                                 // mutate: allocates, and warms up
    trainer.step(stream.next(), config.train.learning_rate);  // mutate: the same
  Prefetcher prefetcher([&]() -> std::optional<Batch> { return stream.next(); });
  Progress progress(fmt::format("training, {} threads", threads), static_cast<int64_t>(options.seconds),
                    "seconds");
  int64_t tokens = 0, pairs = 0, labels = 0, shown = 0;
  const PartTimes parts;
  double seconds = 0, used = 0;
  limit.sample();
  while (seconds < options.seconds) {
    const auto start = BenchClock::now();
    const double used_before = processor_seconds();
    const Batch batch = *prefetcher.next();
    trainer.step(batch, config.train.learning_rate);
    seconds += since(start);
    used += processor_seconds() - used_before;
    if (limit.seconds() < seconds / 8) limit.sample();  // mutate: precision of a measurement
    tokens += batch.rows();
    pairs += batch.pairs();
    labels += static_cast<int64_t>(batch.labels.size());
    progress.advance(static_cast<int64_t>(seconds) - shown);  // mutate: shown only
    shown = static_cast<int64_t>(seconds);                    // mutate: shown only
  }
  TrainBenchRow row;
  row.precision = name_of(config.train.precision);
  row.threads = threads;
  row.tokens_per_second = static_cast<double>(tokens) / seconds;
  row.pairs_per_second = static_cast<double>(pairs) / seconds;
  row.flops_per_token =
      training_flops_per_token(trainer.decoder(), static_cast<double>(labels) / static_cast<double>(tokens));
  row.limit_gflops = limit.mean() / 1e9;
  row.share_of_limit = row.tokens_per_second * row.flops_per_token / limit.mean();
  row.peak_bytes = peak_bytes();
  row.cpu_share = used / (seconds * static_cast<double>(threads));
  row.breakdown["waiting"] = prefetcher.waited_seconds() / seconds;
  double rest = 1 - row.breakdown["waiting"];
  for (const auto& [part, spent] : parts.seconds()) {
    row.breakdown[part] = spent / seconds;
    rest -= spent / seconds;
  }
  row.breakdown["rest"] = rest;
  return row;
}

}  // namespace

json TrainBenchRow::to_json() const {
  return {{"precision", precision},
          {"threads", threads},
          {"tokens_per_second", tokens_per_second},
          {"pairs_per_second", pairs_per_second},
          {"flops_per_token", flops_per_token},
          {"limit_gflops", limit_gflops},
          {"share_of_limit", share_of_limit},
          {"peak_bytes", peak_bytes},
          {"busy", busy},
          {"cpu_share", cpu_share},
          {"busy_efficiency", busy_efficiency},
          {"breakdown", breakdown}};
}

json TrainBench::to_json() const {
  json all = {{"limit_gflops", limit_gflops}, {"train", json::array()}};
  for (const TrainBenchRow& row : rows) all["train"].push_back(row.to_json());
  for (const ThreadScaling& one : scaling) all["scaling"].push_back(one.to_json());
  return all;
}

json DecodeBenchRow::to_json() const {
  return {{"precision", precision},
          {"beam", beam},
          {"batch", batch},
          {"sentences_per_second", sentences_per_second},
          {"tokens_per_second", tokens_per_second},
          {"peak_bytes", peak_bytes},
          {"busy", busy},
          {"cpu_share", cpu_share},
          {"busy_efficiency", busy_efficiency}};
}

json DecodeBench::to_json() const {
  json all = {{"decode", json::array()}, {"first_translation_seconds", first_translation_seconds}};
  for (const DecodeBenchRow& row : rows) all["decode"].push_back(row.to_json());
  return all;
}

TrainBench bench_training(const RunConfig& config, const TrainBenchOptions& options) {
  check_data_files(config.data);
  DataCache cache(options.cache, num_threads());
  ModelConfig model = config.model;
  model.vocabulary = choose_tokenizer(config, cache).size();
  const auto all = static_cast<int64_t>(available_cores());
  std::vector<int64_t> threads = options.threads;
  if (threads.empty()) threads = all > 1 ? std::vector<int64_t>{1, all} : std::vector<int64_t>{1};
  const at::TensorOptions on_device = training_device(config.train);
  TrainBench bench;
  for (const int64_t count : threads) {
    set_num_threads(count);
    RunConfig timed = config;
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
      if (precision == Precision::float16 && config.train.precision != precision) continue;
      const at::TensorOptions type = on_device.dtype(product_type(precision));
      MatrixSpeed limit(model, config.train.batch_tokens, type);
      timed.train.precision = precision;
      // Without instructions for it bfloat16 is timed only if it is configured.
      if (precision == Precision::float32 || has_bfloat16_instructions() || !on_device.device().is_cpu() ||
          config.train.precision == precision) {
        bench.rows.push_back(time_training(timed, options, count, limit));
        if (options.busy > 0) {
          const TrainBenchRow quiet = bench.rows.back();
          const BusyProcesses others(options.busy, options.busy_nice);
          MatrixSpeed busy_limit(model, config.train.batch_tokens, type);
          TrainBenchRow row = time_training(timed, options, count, busy_limit);
          row.busy = options.busy;
          compare_with_quiet(row, row.tokens_per_second, quiet, quiet.tokens_per_second);
          bench.rows.push_back(row);
        }
      } else {
        limit.sample();
      }
      bench.limit_gflops[std::string(name_of(precision))] = limit.mean() / 1e9;
    }
  }
  bench.scaling = fit_scaling(bench.rows);
  return bench;
}

DecodeBench bench_decoding(const ModelSource& source, const TestSet& test,
                           const DecodeBenchOptions& options) {
  set_num_threads(options.threads);
  DecodeBench bench;
  for (const WeightPrecision precision :
       {WeightPrecision::float32, WeightPrecision::bfloat16, WeightPrecision::int8}) {
    if (options.busy > 0 && precision != WeightPrecision::int8) continue;
    if (!options.device.is_cpu() && precision == WeightPrecision::int8) continue;
    const auto translator = open_translator(source, precision, options.device);
    keep_freed_memory();  // mutate: speed
    translator->config().nbest = 1;
    for (const int64_t beam : {1, 4}) {
      translator->config().beam = beam;
      for (const int64_t batch : {1, 64}) {
        translator->config().batch = batch;  // mutate: speed, which is what is measured
        std::vector<std::string> sentences;
        const auto wanted = static_cast<size_t>(batch == 1 ? options.single : options.sentences);
        const size_t count = std::min(wanted, test.sources.size());
        for (size_t i = 0; i < count; ++i) sentences.push_back(test.sources[i * test.sources.size() / count]);
        DecodeBenchRow row;
        row.precision = name_of(precision);
        row.beam = beam;
        row.batch = batch;
        time_decoding(*translator, sentences, batch == 1, row);
        bench.rows.push_back(row);
        if (options.busy == 0) continue;
        const DecodeBenchRow quiet = row;
        const BusyProcesses others(options.busy, options.busy_nice);
        row.busy = options.busy;
        time_decoding(*translator, sentences, batch == 1, row);
        compare_with_quiet(row, row.sentences_per_second, quiet, quiet.sentences_per_second);
        bench.rows.push_back(row);
      }
    }
  }
  return bench;
}

}  // namespace calque

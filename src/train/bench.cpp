#include "calque/train/bench.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "calque/base/file.h"
#include "calque/base/progress.h"
#include "calque/data/prefetcher.h"
#include "calque/kernels/threads.h"
#include "calque/train/assembly.h"
#include "calque/train/matrix_speed.h"
#include "calque/train/part_times.h"
#include "calque/train/trainer.h"

namespace calque {
namespace {

using nlohmann::json;
using BenchClock = std::chrono::steady_clock;

double since(BenchClock::time_point start) {
  return std::chrono::duration<double>(BenchClock::now() - start).count();
}

// Linux keeps the largest size that a process ever had, and can be told to begin anew.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    int64_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

// Sentences one at a time, or as many at a time as the configuration says.
json time_decoding(const Translator& translator, const std::vector<std::string>& sentences, bool alone) {
  int64_t tokens = 0;
  Progress progress(fmt::format("beam {}, {}", translator.config().beam, alone ? "one by one" : "in batches"),
                    static_cast<int64_t>(sentences.size()), "sentences");
  const auto count = [&](const Translation& translation) {
    for (const Hypothesis& part : translation.best.front().parts)
      tokens += static_cast<int64_t>(part.tokens.size()) + 1;
  };
  translator.translate(sentences.front());  // the first one allocates
  forget_peak();
  const auto start = BenchClock::now();
  if (alone) {
    for (const std::string& sentence : sentences) {
      count(translator.translate(sentence));
      progress.advance(1);
    }
  } else {
    for (const Translation& one :
         translator.translate_all(sentences, [&](int64_t n) { progress.advance(n); }))
      count(one);
  }
  const double seconds = since(start);
  return {{"sentences_per_second", static_cast<double>(sentences.size()) / seconds},
          {"tokens_per_second", static_cast<double>(tokens) / seconds},
          {"peak_bytes", peak_bytes()}};
}

// Between the steps the machine's own limit is measured, for an eighth of the time, so that both are averages
// over the same seconds: a machine whose neighbours are felt is never the same for long.
json time_training(const RunConfig& config, const TrainBenchOptions& options, int64_t threads,
                   MatrixSpeed& limit) {
  use_threads(threads);
  keep_freed_memory();
  const torch::Device device = choose_device(config.train.device);
  const Tokenizer tokenizer = choose_tokenizer(config, options.cache);
  forget_peak();
  Trainer trainer(make_model(config, tokenizer, device), config.train, static_cast<uint64_t>(config.seed),
                  device, rate_shares(config));
  BatchStream stream(stream_options(config, options.cache), tokenizer, 0, 0);
  Prefetcher prefetcher([&]() -> std::optional<Batch> { return stream.next(); });
  for (int i = 0; i < 2; ++i)
    trainer.step(*prefetcher.next(), config.train.learning_rate);  // allocates, and warms up
  Progress progress(fmt::format("training, {} threads", threads), static_cast<int64_t>(options.seconds),
                    "seconds");
  int64_t rows = 0, pairs = 0, labels = 0, told = 0;
  const double waited = prefetcher.waited_seconds();
  const PartTimes parts;
  double seconds = 0;
  limit.sample();
  while (seconds < options.seconds) {
    const auto start = BenchClock::now();
    const Batch batch = *prefetcher.next();
    trainer.step(batch, config.train.learning_rate);
    seconds += since(start);
    if (limit.seconds() < seconds / 8) limit.sample();
    rows += batch.rows();
    pairs += batch.pairs();
    labels += static_cast<int64_t>(batch.labels.size());
    progress.advance(static_cast<int64_t>(seconds) - told);
    told = static_cast<int64_t>(seconds);
  }
  const double flops =
      training_flops_a_token(trainer.decoder(), static_cast<double>(labels) / static_cast<double>(rows));
  json breakdown = {{"waiting", (prefetcher.waited_seconds() - waited) / seconds}};
  double rest = seconds - (prefetcher.waited_seconds() - waited);
  for (const auto& [part, spent] : parts.seconds()) {
    breakdown[part] = spent / seconds;
    rest -= spent;
  }
  breakdown["rest"] = rest / seconds;
  return {{"precision", name_of(config.train.precision)},
          {"threads", threads},
          {"tokens_per_second", static_cast<double>(rows) / seconds},
          {"pairs_per_second", static_cast<double>(pairs) / seconds},
          {"flops_per_token", flops},
          {"limit_gflops", limit.mean() / 1e9},
          {"share_of_limit", static_cast<double>(rows) / seconds * flops / limit.mean()},
          {"peak_bytes", peak_bytes()},
          {"breakdown", breakdown}};
}

}  // namespace

json bench_training(const RunConfig& config, const TrainBenchOptions& options) {
  ModelConfig model = config.model;
  model.vocabulary = choose_tokenizer(config, options.cache).size();
  const auto all = static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  std::vector<int64_t> threads = options.threads;
  if (threads.empty()) threads = all > 1 ? std::vector<int64_t>{1, all} : std::vector<int64_t>{1};
  json told = {{"train", json::array()}};
  for (const int64_t count : threads) {
    use_threads(count);
    RunConfig timed = config;
    for (const auto& [precision, type] :
         {std::pair{Precision::float32, torch::kFloat32}, std::pair{Precision::bfloat16, torch::kBFloat16}}) {
      MatrixSpeed limit(model, config.train.batch_tokens, type);
      timed.train.precision = precision;
      // Without instructions for it bfloat16 is timed only if it is asked for.
      if (precision == Precision::float32 || fast_bfloat16() || config.train.precision == precision)
        told["train"].push_back(time_training(timed, options, count, limit));
      else
        limit.sample();
      told["limit_gflops"][std::string(name_of(precision))] = limit.mean() / 1e9;
    }
  }
  return told;
}

json bench_decoding(const ModelSource& source, const TestSet& test, const DecodeBenchOptions& options) {
  use_threads(options.threads);
  json told = {{"decode", json::array()}};
  for (const Packing packing : {Packing::float32, Packing::bfloat16, Packing::int8}) {
    const auto translator = open_translator(source, packing);
    translator->config().nbest = 1;
    for (const int64_t beam : {1, 4}) {
      translator->config().beam = beam;
      for (const int64_t batch : {1, 64}) {
        translator->config().batch = batch;
        std::vector<std::string> sentences;
        const auto wanted = static_cast<size_t>(batch == 1 ? options.alone : options.sentences);
        const size_t count = std::min(wanted, test.sources.size());
        for (size_t i = 0; i < count; ++i) sentences.push_back(test.sources[i * test.sources.size() / count]);
        json row = {{"precision", name_of(packing)}, {"beam", beam}, {"batch", batch}};
        row.update(time_decoding(*translator, sentences, batch == 1));
        told["decode"].push_back(row);
      }
    }
  }
  return told;
}

}  // namespace calque

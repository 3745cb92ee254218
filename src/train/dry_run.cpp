#include "calque/train/dry_run.h"

#include <sys/resource.h>

#include <chrono>
#include <cmath>

#include "calque/base/error.h"
#include "calque/kernels/threads.h"
#include "calque/train/limits.h"
#include "calque/train/run_setup.h"
#include "calque/train/trainer.h"

namespace calque {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int timed_steps = 5;

void count_parameters(const Decoder& decoder, TrainingEstimate& estimate) {
  estimate.parameters = decoder.parameter_count();
  for (const auto& block : decoder.blocks) {
    for (const auto& p : block->attention->parameters()) estimate.attention += p.numel();
    for (const auto& p : block->feed_forward->parameters()) estimate.mlp += p.numel();
    for (const Block::Matrix& matrix : block->matrices()) {
      const bool attention = std::string_view(matrix.path).starts_with("attention");
      (attention ? estimate.attention : estimate.mlp) += matrix.linear->stored_weights();
    }
  }
  estimate.embedding = decoder.embedding->weight.numel();
  estimate.output = decoder.output.defined() ? decoder.output.numel() : 0;
  estimate.norms =
      estimate.parameters - estimate.embedding - estimate.output - estimate.attention - estimate.mlp;
}

}  // namespace

TrainingEstimate estimate_training(const RunConfig& config, const TrainingOptions& options) {
  set_num_threads(config.train.threads);
  keep_freed_memory();  // mutate: speed
  if (config.data.train.empty()) throw UserError("data.train is empty: there is nothing to train on");
  check_data_files(config.data);
  DataCache cache(options.cache(), num_threads());
  const Tokenizer tokenizer = choose_tokenizer(config, cache);
  BatchStream stream(stream_options(config), tokenizer, cache, 0, 0);
  const torch::Device device = training_device(config.train);
  Trainer trainer(make_model(config, tokenizer, device), config.train, static_cast<uint64_t>(config.seed),
                  device, config.finetune);
  double rows = 0, seconds = 0;
  trainer.step(stream.next(), 0);  // mutate: speed; the first step allocates
  for (int i = 0; i < timed_steps; ++i) {
    const Batch batch = stream.next();
    const auto started = Clock::now();
    trainer.step(batch, 0);
    seconds += std::chrono::duration<double>(Clock::now() - started).count();
    rows += static_cast<double>(batch.rows());
  }
  const CheckpointContent snapshot = trainer.snapshot(tokenizer);  // a checkpoint needs its memory too
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);

  TrainingEstimate estimate;
  count_parameters(trainer.decoder(), estimate);
  const double tokens_per_step = rows / timed_steps;
  estimate.pairs = stream.pairs();
  estimate.tokens_per_epoch = stream.epoch_rows();
  estimate.steps_per_epoch = stream.epoch_steps();
  estimate.tokens_per_second = rows / seconds;
  estimate.steps = Limits(config.train)
                       .expected_steps(static_cast<double>(estimate.steps_per_epoch), tokens_per_step,
                                       estimate.tokens_per_second);
  estimate.minutes = estimate.steps * tokens_per_step / estimate.tokens_per_second / 60;
  estimate.peak_bytes = usage.ru_maxrss * 1024;
  return estimate;
}

nlohmann::json TrainingEstimate::to_json() const {
  return {{"parameters",
           {{"total", parameters},
            {"embedding", embedding},
            {"attention", attention},
            {"mlp", mlp},
            {"norms", norms},
            {"output", output}}},
          {"pairs", pairs},
          {"tokens_per_epoch", std::llround(tokens_per_epoch)},
          {"steps_per_epoch", steps_per_epoch},
          {"steps", std::llround(steps)},
          {"tokens_per_second", tokens_per_second},
          {"minutes", minutes},
          {"peak_bytes", peak_bytes}};
}

}  // namespace calque

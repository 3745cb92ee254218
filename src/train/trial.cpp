#include "calque/train/trial.h"
#include "calque/kernels/threads.h"

#include <sys/resource.h>

#include <chrono>
#include <cmath>

#include "calque/base/error.h"
#include "calque/base/interrupt.h"
#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/data/prepared_data.h"
#include "calque/train/assembly.h"
#include "calque/train/trainer.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

TrainingResult overfit_batch(const RunConfig& config, const TrainingOptions& options) {
  const fs::path cache = options.runs / ".cache";
  const Tokenizer tokenizer = choose_tokenizer(config, cache);
  BatchStream stream(stream_options(config, cache), tokenizer, 0, 0);
  const Batch batch = stream.next();
  const torch::Device device = choose_device(config.train.device);
  Trainer trainer(make_model(config, tokenizer, device), config.train, static_cast<uint64_t>(config.seed),
                  device, rate_shares(config));
  constexpr double known_by_heart = 0.1;  // nats a label
  const int64_t steps = config.train.steps > 0 ? std::min<int64_t>(config.train.steps, 500) : 500;
  log::info("training on one batch of {} pairs for at most {} steps", batch.pairs(), steps);
  const Interrupt interrupt;
  Progress progress("overfitting", steps, "steps");
  double first = 0, loss = 0;
  int64_t step = 0;
  for (; step < steps; ++step) {
    loss = trainer.step(batch, config.train.learning_rate * std::min(1.0, static_cast<double>(step + 1) / 20))
               .loss;
    if (step == 0) first = loss;
    progress.advance(1);
    if (loss < known_by_heart || interrupt.requested() || !std::isfinite(loss)) break;
  }
  const bool learnt = loss < known_by_heart;
  TrainingResult result{learnt ? TrainingEnd::overfitted : TrainingEnd::not_overfitted,
                        {},
                        {{"first_loss", first}, {"loss", loss}, {"steps", std::min(step + 1, steps)}}};
  if (interrupt.requested()) result.end = TrainingEnd::interrupted;
  return result;
}

json estimate_training(const RunConfig& config, const TrainingOptions& options) {
  use_threads(config.train.threads);
  if (config.data.train.empty()) throw UserError("data.train is empty: there is nothing to learn from");
  const fs::path cache = options.runs / ".cache";
  const Tokenizer tokenizer = choose_tokenizer(config, cache);
  BatchStream stream(stream_options(config, cache), tokenizer, 0, 0);
  const torch::Device device = choose_device(config.train.device);
  Trainer trainer(make_model(config, tokenizer, device), config.train, static_cast<uint64_t>(config.seed),
                  device, rate_shares(config));
  const Decoder& decoder = trainer.decoder();
  constexpr int timed_steps = 5;
  double rows = 0, seconds = 0;
  trainer.step(stream.next(), 0);  // the first one allocates
  for (int i = 0; i < timed_steps; ++i) {
    const Batch batch = stream.next();
    const auto started = std::chrono::steady_clock::now();
    trainer.step(batch, 0);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    rows += static_cast<double>(batch.rows());
  }
  const double speed = rows / seconds, step_rows = rows / timed_steps;
  double steps = 1e18;
  const TrainConfig& c = config.train;
  if (c.steps > 0) steps = std::min(steps, static_cast<double>(c.steps));
  if (c.tokens > 0) steps = std::min(steps, static_cast<double>(c.tokens) / step_rows);
  if (c.epochs > 0) steps = std::min(steps, c.epochs * static_cast<double>(stream.epoch_steps()));
  if (c.minutes.value > 0) steps = std::min(steps, c.minutes.value * 60 * speed / step_rows);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  int64_t attention = 0, feed_forward = 0;
  for (const auto& block : decoder.blocks) {
    for (const auto& p : block->attention->parameters()) attention += p.numel();
    for (const auto& p : block->feed_forward->parameters()) feed_forward += p.numel();
  }
  const int64_t embedding = decoder.embedding->weight.numel(),
                output = decoder.output.defined() ? decoder.output.numel() : 0;
  return {{"parameters",
           {{"total", decoder.parameter_count()},
            {"embedding", embedding},
            {"attention", attention},
            {"feed_forward", feed_forward},
            {"norms", decoder.parameter_count() - embedding - output - attention - feed_forward},
            {"output", output}}},
          {"pairs", stream.pairs()},
          {"tokens_per_epoch", stream.epoch_rows()},
          {"steps_per_epoch", stream.epoch_steps()},
          {"steps", std::llround(steps)},
          {"tokens_per_second", speed},
          {"minutes", steps * step_rows / speed / 60},
          {"peak_bytes", usage.ru_maxrss * 1024}};
}

}  // namespace calque

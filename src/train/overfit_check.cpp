#include "calque/train/overfit_check.h"

#include <cmath>

#include "calque/base/error.h"
#include "calque/base/interrupt.h"
#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/kernels/threads.h"
#include "calque/train/run_setup.h"
#include "calque/train/trainer.h"

namespace calque {
namespace {

constexpr double overfitted_loss = 0.1;  // nats per label
constexpr int64_t max_steps = 500;
constexpr int64_t warmup_steps = 20;

}  // namespace

nlohmann::json OverfitResult::to_json() const {
  return {{"overfitted", overfitted}, {"first_loss", first_loss}, {"loss", loss}, {"steps", steps}};
}

OverfitResult overfit_batch(const RunConfig& config, const TrainingOptions& options) {
  set_num_threads(config.train.threads);
  if (config.data.train.empty()) throw UserError("data.train is empty: there is nothing to train on");
  check_data_files(config.data);
  DataCache cache(options.cache(), num_threads());
  const Tokenizer tokenizer = choose_tokenizer(config, cache);
  BatchStream stream(stream_options(config), tokenizer, cache, 0, 0);
  const Batch batch = stream.next();
  const torch::Device device = training_device(config.train, options.group->world());
  Trainer trainer(make_model(config, tokenizer, device), config.train, static_cast<uint64_t>(config.seed),
                  device, config.finetune);
  const int64_t steps = config.train.steps > 0 ? std::min(config.train.steps, max_steps) : max_steps;
  log::info("training on one batch of {} pairs for at most {} steps", batch.pairs(), steps);
  const Interrupt interrupt;
  Progress progress("overfitting", steps, "steps");
  OverfitResult result;
  while (result.steps < steps && !result.overfitted && !interrupt.requested()) {
    const double warmup =
        std::min(1.0, static_cast<double>(result.steps + 1) / static_cast<double>(warmup_steps));
    result.loss = trainer.step(batch, config.train.learning_rate * warmup).loss;
    if (result.steps++ == 0) result.first_loss = result.loss;
    result.overfitted = result.loss < overfitted_loss;
    progress.advance(1);  // mutate: shown only
    if (!std::isfinite(result.loss)) break;
  }
  result.interrupted = interrupt.requested();
  return result;
}

}  // namespace calque

#include "calque/train/trainer.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <cmath>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/convert/hf_names.h"
#include "calque/model/lora.h"

namespace calque {

using nlohmann::json;
using torch::Tensor;

json TrainingProgress::to_json() const {
  return {{"step", step},
          {"epoch", epoch},
          {"epoch_step", epoch_step},
          {"epoch_steps", epoch_steps},
          {"tokens", tokens},
          {"seconds", seconds},
          {"best_valid_loss", best_valid_loss},
          {"best_valid_bleu", best_valid_bleu},
          {"best_step", best_step},
          {"validations_without_gain", validations_without_gain},
          {"skipped_steps", skipped_steps},
          {"bad_steps_in_a_row", bad_steps_in_a_row},
          {"train_hash", train_hash}};
}

TrainingProgress TrainingProgress::from_json(const json& j) {
  TrainingProgress p;
  p.step = j.at("step");
  p.epoch = j.at("epoch");
  p.epoch_step = j.at("epoch_step");
  p.epoch_steps = j.at("epoch_steps");
  p.tokens = j.at("tokens");
  p.seconds = j.at("seconds");
  p.best_valid_loss = j.at("best_valid_loss");
  p.best_valid_bleu = j.value("best_valid_bleu", -1.0);
  p.best_step = j.at("best_step");
  p.validations_without_gain = j.at("validations_without_gain");
  p.skipped_steps = j.at("skipped_steps");
  p.bad_steps_in_a_row = j.at("bad_steps_in_a_row");
  p.train_hash = j.value("train_hash", "");
  return p;
}

Trainer::Trainer(std::shared_ptr<Decoder> decoder, const TrainConfig& config, uint64_t seed,
                 torch::Device device, const Optimizer::RateShare& rate_share)
    : decoder_(std::move(decoder)),
      config_(config),
      seed_(seed),
      device_(device),
      optimizer_(*decoder_, config, rate_share) {
  for (const auto& named : decoder_->named_parameters()) {
    if (named.value().requires_grad()) trained_.emplace_back(named.key(), named.value());
  }
  if (config_.ema > 0) {
    for (const auto& [name, parameter] : trained_) average_.push_back(parameter.detach().clone());
  }
}

// The sum over labels, so that parts of any size add up to the same; divided by the step's labels at the end.
double Trainer::accumulate(const Batch& batch) {
  const bool prefix = decoder_->config().attention == AttentionKind::prefix;
  const auto labels = static_cast<double>(batch.labels.size());
  double loss = 0;
  for (const Batch& part :
       split_batch(batch, config_.micro_batch_tokens > 0 ? config_.micro_batch_tokens : batch.rows())) {
    const OutputLoss sums =
        decoder_->loss(index_tensor(part.tokens, device_), make_layout(part, prefix, device_),
                       index_tensor(part.labels, device_), config_.label_smoothing);
    (sums.smoothed / labels).backward();
    loss += sums.plain.item<double>();
  }
  return loss / labels;
}

int64_t Trainer::trained_parameters() const {
  int64_t count = 0;
  for (const auto& [name, parameter] : trained_) count += parameter.numel();
  return count;
}

double Trainer::clip_gradients() {
  RECORD_USER_SCOPE("optimizer");
  std::vector<Tensor> gradients;
  for (const auto& [name, parameter] : trained_) gradients.push_back(parameter.grad());
  double squares = 0;
  for (const Tensor& norm : at::_foreach_norm(gradients)) squares += std::pow(norm.item<double>(), 2);
  const double norm = std::sqrt(squares);
  if (config_.clip > 0 && norm > config_.clip && std::isfinite(norm))
    at::_foreach_mul_(gradients, config_.clip / norm);
  return norm;
}

StepResult Trainer::step(const Batch& batch, double learning_rate) {
  decoder_->train();
  for (auto& [name, parameter] : trained_) parameter.mutable_grad() = Tensor();
  // What is drawn in a step (dropout) follows from the run's seed and the step alone: resuming needs no
  // generator's state.
  at::manual_seed(mix(seed_, 0xD0, static_cast<uint64_t>(progress_.step)));
  StepResult result;
  result.loss = accumulate(batch);
  const torch::NoGradGuard no_gradients;
  result.gradient_norm = clip_gradients();
  result.skipped = !std::isfinite(result.loss) || !std::isfinite(result.gradient_norm);
  if (result.skipped) {
    ++progress_.skipped_steps;
    ++progress_.bad_steps_in_a_row;
  } else {
    progress_.bad_steps_in_a_row = 0;
    optimizer_.step(learning_rate);
    update_average();
  }
  ++progress_.step;
  progress_.tokens += batch.rows();
  progress_.epoch = batch.place.epoch;
  progress_.epoch_step = batch.place.step + 1;
  progress_.epoch_steps = batch.place.steps;
  return result;
}

void Trainer::update_average() {
  if (average_.empty()) return;
  // While the run is young the mean is over what there is, not over the drawn beginning.
  const double decay = std::min(config_.ema, (1.0 + static_cast<double>(progress_.step)) /
                                                 (10.0 + static_cast<double>(progress_.step)));
  for (size_t i = 0; i < average_.size(); ++i) average_[i].lerp_(trained_[i].second, 1 - decay);
}

void Trainer::swap_average() {
  const torch::NoGradGuard no_gradients;
  for (size_t i = 0; i < average_.size(); ++i) {
    const Tensor kept = trained_[i].second.detach().clone();
    trained_[i].second.copy_(average_[i]);
    average_[i].copy_(kept);
  }
}

void Trainer::show_model(const std::function<void(const std::shared_ptr<const Decoder>&)>& use) {
  decoder_->eval();
  const torch::NoGradGuard no_gradients;
  swap_average();
  try {
    use(decoder_);
  } catch (...) {
    swap_average();
    throw;
  }
  swap_average();
}

double Trainer::validate(const std::vector<Batch>& batches) {
  const bool prefix = decoder_->config().attention == AttentionKind::prefix;
  double loss = 0, labels = 0;
  show_model([&](const std::shared_ptr<const Decoder>& decoder) {
    for (const Batch& batch : batches) {
      loss += decoder
                  ->loss(index_tensor(batch.tokens, device_), make_layout(batch, prefix, device_),
                         index_tensor(batch.labels, device_), 0)
                  .plain.item<double>();
      labels += static_cast<double>(batch.labels.size());
    }
  });
  return loss / labels;
}

// With averaged weights the model file holds the average, and the state the weights that training goes on
// with.
CheckpointContent Trainer::snapshot(const Tokenizer& tokenizer) {
  swap_average();
  CheckpointContent content;
  if (has_adapters(*decoder_)) {
    for (const auto& [name, parameter] : trained_)
      content.adapters.emplace_back(name, parameter.detach().cpu().clone());
  } else {
    for (const auto& [name, view] : hf_views(*decoder_))
      content.weights.emplace_back(name, view.cpu().clone(at::MemoryFormat::Contiguous));
  }
  swap_average();
  content.config = hf_config(decoder_->config());
  content.tokenizer = tokenizer.serialized();
  content.tokenizer_file = tokenizer.file_name();
  for (const auto& [name, tensor] : optimizer_.state())
    content.state.emplace_back("optimizer." + name, tensor.cpu().clone());
  if (!average_.empty()) {
    for (const auto& [name, parameter] : trained_)
      content.state.emplace_back("weights." + name, parameter.detach().cpu().clone());
  }
  content.progress = progress_.to_json();
  return content;
}

void Trainer::restore(const Checkpoint& checkpoint) {
  const torch::NoGradGuard no_gradients;
  if (has_adapters(*decoder_)) {
    checkpoint.load_adapters_into(*decoder_);
  } else {
    checkpoint.load_into(*decoder_);
  }
  const Safetensors state = checkpoint.state();
  for (const auto& [name, tensor] : optimizer_.state()) tensor.copy_(state.tensor("optimizer." + name));
  for (size_t i = 0; i < average_.size(); ++i) {
    average_[i].copy_(trained_[i].second);
    trained_[i].second.copy_(state.tensor("weights." + trained_[i].first));
  }
  progress_ = TrainingProgress::from_json(checkpoint.progress());
}

}  // namespace calque

#include "calque/train/trainer.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <cmath>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/checkpoint/weight_names.h"
#include "calque/model/batch_layout.h"
#include "calque/model/lora.h"
#include "calque/train/run_setup.h"

namespace calque {

using torch::Tensor;

Trainer::Trainer(std::shared_ptr<Decoder> decoder, const TrainConfig& config, uint64_t seed,
                 torch::Device device, const FinetuneConfig& finetune)
    : decoder_(std::move(decoder)),
      config_(config),
      seed_(seed),
      device_(device),
      trained_(trained_parameters(*decoder_, finetune)),
      optimizer_(trained_, config) {
  if (config_.precision == Precision::float16) state_.loss_scale.emplace();
  if (config_.ema_decay > 0) {
    for (const TrainedParameter& parameter : trained_) average_.push_back(parameter.tensor.detach().clone());
  }
}

// Sums over labels, so that micro-batches of any size add up to the same; normalised by the step's labels.
double Trainer::accumulate(const Batch& batch) {
  const auto labels = static_cast<double>(batch.labels.size());
  double loss = 0;
  for (const Batch& part :
       split_batch(batch, config_.micro_batch_tokens > 0 ? config_.micro_batch_tokens : batch.rows())) {
    const CrossEntropyLoss sums = decoder_->loss(index_tensor(part.tokens, device_),
                                                 batch_layout(part, decoder_->config().attention, device_),
                                                 index_tensor(part.labels, device_), config_.label_smoothing);
    const Tensor mean = sums.smoothed / labels;
    (state_.loss_scale ? mean * state_.loss_scale->value : mean).backward();
    loss += sums.plain.item<double>();
  }
  return loss / labels;
}

int64_t Trainer::trained_parameter_count() const {
  int64_t count = 0;
  for (const TrainedParameter& parameter : trained_) count += parameter.tensor.numel();
  return count;
}

// Undoes the loss scale, and clips. The norms reach the CPU in one copy.
double Trainer::clip_gradients() {
  RECORD_USER_SCOPE("optimizer");
  std::vector<Tensor> gradients;
  for (const TrainedParameter& parameter : trained_) gradients.push_back(parameter.tensor.grad());
  double squares = 0;
  const Tensor norms = torch::stack(at::_foreach_norm(gradients)).to(torch::kCPU, torch::kFloat64);
  for (int64_t i = 0; i < norms.numel(); ++i) squares += std::pow(norms.const_data_ptr<double>()[i], 2);
  const double unscale = state_.loss_scale ? 1 / state_.loss_scale->value : 1;
  const double norm = std::sqrt(squares) * unscale;
  const bool clips = config_.max_grad_norm > 0 && norm > config_.max_grad_norm;
  if (std::isfinite(norm) && (clips || unscale != 1))
    at::_foreach_mul_(gradients, clips ? config_.max_grad_norm / norm * unscale : unscale);
  return norm;
}

StepResult Trainer::step(const Batch& batch, double learning_rate) {
  decoder_->train();
  for (TrainedParameter& parameter : trained_) parameter.tensor.mutable_grad() = Tensor();
  // Dropout depends on the run's seed and the step alone, so that resuming needs no generator state.
  at::manual_seed(mix(seed_, 0xD0, static_cast<uint64_t>(state_.step)));
  StepResult result;
  result.loss = accumulate(batch);
  const torch::NoGradGuard no_gradients;
  result.gradient_norm = clip_gradients();
  result.skipped = !std::isfinite(result.loss) || !std::isfinite(result.gradient_norm);
  if (state_.loss_scale) state_.loss_scale->update(result.skipped);
  if (result.skipped) {
    ++state_.skipped_steps;
    ++state_.consecutive_nonfinite_steps;
  } else {
    state_.consecutive_nonfinite_steps = 0;
    optimizer_.step(learning_rate);
    update_average();
  }
  ++state_.step;
  state_.tokens += batch.rows();
  state_.epoch = batch.place.epoch;
  state_.epoch_step = batch.place.step + 1;
  state_.epoch_steps = batch.place.steps;
  return result;
}

void Trainer::update_average() {
  if (average_.empty()) return;
  // Ramp the EMA decay up so that the initial weights don't dominate.
  const double decay = std::min(config_.ema_decay, (1.0 + static_cast<double>(state_.step)) /
                                                       (10.0 + static_cast<double>(state_.step)));
  for (size_t i = 0; i < average_.size(); ++i) average_[i].lerp_(trained_[i].tensor, 1 - decay);
}

void Trainer::swap_average() {
  const torch::NoGradGuard no_gradients;
  for (size_t i = 0; i < average_.size(); ++i) {
    const Tensor kept = trained_[i].tensor.detach().clone();
    trained_[i].tensor.copy_(average_[i]);
    average_[i].copy_(kept);
  }
}

void Trainer::with_evaluation_model(const std::function<void(const Decoder&)>& use) {
  decoder_->eval();
  const torch::NoGradGuard no_gradients;
  swap_average();
  try {
    use(*decoder_);
  } catch (...) {
    swap_average();
    throw;
  }
  swap_average();
}

double Trainer::validation_loss(const std::vector<Batch>& batches) {
  double loss = 0, labels = 0;
  with_evaluation_model([&](const Decoder& decoder) {
    for (const Batch& batch : batches) {
      loss += decoder
                  .loss(index_tensor(batch.tokens, device_),
                        batch_layout(batch, decoder.config().attention, device_),
                        index_tensor(batch.labels, device_), 0)
                  .plain.item<double>();
      labels += static_cast<double>(batch.labels.size());
    }
  });
  return loss / labels;
}

// With an EMA the model file holds the averaged weights, and the training state the raw ones.
CheckpointContent Trainer::snapshot(const Tokenizer& tokenizer) {
  swap_average();
  CheckpointContent content;
  if (has_adapters(*decoder_)) {
    for (const TrainedParameter& parameter : trained_)
      content.adapters.emplace_back(parameter.name, parameter.tensor.detach().cpu().clone());
  } else {
    for (const auto& [name, view] : weight_views(*decoder_))
      content.weights.emplace_back(name, view.cpu().clone(at::MemoryFormat::Contiguous));
  }
  swap_average();
  content.config = hf_config(decoder_->config());
  content.tokenizer = tokenizer.serialized();
  content.tokenizer_file = tokenizer.file_name();
  for (const auto& [name, tensor] : optimizer_.state())
    content.state.emplace_back("optimizer." + name, tensor.cpu().clone());
  if (!average_.empty()) {
    for (const TrainedParameter& parameter : trained_)
      content.state.emplace_back("weights." + parameter.name, parameter.tensor.detach().cpu().clone());
  }
  content.progress = state_.to_json();
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
    average_[i].copy_(trained_[i].tensor);
    trained_[i].tensor.copy_(state.tensor("weights." + trained_[i].name));
  }
  const auto first_scale = std::exchange(state_, TrainerState::from_json(checkpoint.progress())).loss_scale;
  // The precision may have changed since the checkpoint.
  if (first_scale.has_value() != state_.loss_scale.has_value()) state_.loss_scale = first_scale;
}

}  // namespace calque

#include "calque/train/trainer.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/checkpoint/weight_names.h"
#include "calque/kernels/sum_of_products.h"
#include "calque/model/batch_layout.h"
#include "calque/model/lora.h"
#include "calque/train/run_setup.h"
#include "calque/train/sharded_state.h"

namespace calque {

using torch::Tensor;

Trainer::Trainer(std::shared_ptr<Decoder> decoder, const TrainConfig& config, uint64_t seed,
                 torch::Device device, const FinetuneConfig& finetune, const Distribution& distribution)
    : decoder_(std::move(decoder)),
      config_(config),
      seed_(seed),
      device_(device),
      distribution_(distribution),
      device_group_(*distribution.group, device),
      trained_(trained_parameters(*decoder_, finetune)),
      shards_(trained_, config.optimizer, device_group_, !distribution.is_local()),
      optimizer_(shards_.own(), config) {
  if (config_.precision == Precision::float16) state_.loss_scale.emplace();
  if (config_.ema_decay > 0) {
    for (const TrainedParameter& parameter : trained_) average_.push_back(parameter.tensor.detach().clone());
  }
  if (distribution_.is_local()) {
    outer_optimizer_ = std::make_unique<OuterOptimizer>(trained_, distribution.config, device_group_);
  } else if (!group().is_alone()) {
    gradient_sum_ = std::make_unique<GradientSum>(trained_, distribution.config.compress, device_group_);
  }
}

// Sums over labels, so that ranks and micro-batches of any size add up to the same; normalised by the step's
// labels on all ranks.
StepResult Trainer::accumulate(const Batch& batch) {
  StepResult result;
  result.rows = batch.rows();
  result.labels = static_cast<int64_t>(batch.labels.size());
  if (gradient_sum_) {
    const auto totals = group().sum({static_cast<double>(result.rows), static_cast<double>(result.labels)});
    result.rows = std::llround(totals[0]);
    result.labels = std::llround(totals[1]);
  }
  const auto parts =
      split_batch(batch, config_.micro_batch_tokens > 0 ? config_.micro_batch_tokens : batch.rows());
  const auto labels = static_cast<double>(result.labels);
  for (const Batch& part : parts) {
    const CrossEntropyLoss sums =
        decoder_->loss(index_tensor(part.tokens, device_), batch_layout(part, decoder_->config(), device_),
                       index_tensor(part.labels, device_), config_.label_smoothing);
    const Tensor mean = sums.smoothed / labels;
    if (gradient_sum_ && &part == &parts.back()) gradient_sum_->start();
    (state_.loss_scale ? mean * state_.loss_scale->value : mean).backward();
    result.loss += sums.plain.item<double>();
  }
  result.loss /= std::max(1.0, labels);
  if (gradient_sum_) gradient_sum_->finish();
  return result;
}

int64_t Trainer::trained_parameter_count() const {
  int64_t count = 0;
  for (const TrainedParameter& parameter : trained_) count += parameter.tensor.numel();
  return count;
}

int64_t Trainer::optimizer_state_bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : optimizer_.state()) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

void Trainer::clear_gradients() {
  for (TrainedParameter& parameter : trained_) parameter.tensor.mutable_grad() = Tensor();
  shards_.take_gradients();
}

// Undoes the loss scale, and clips. Each rank measures the gradients of the parameters that it updates, and
// the ranks' losses are added up on the way. From other devices the norms come in one copy. With local steps
// a rank that got no pairs has no gradients.
double Trainer::clip_gradients(double& loss) {
  RECORD_USER_SCOPE("optimizer");
  std::vector<Tensor> gradients;
  for (const TrainedParameter& parameter : shards_.own()) {
    if (parameter.tensor.grad().defined()) gradients.push_back(parameter.tensor.grad());
  }
  double squares = 0;
  if (device_.is_cpu()) {
    for (const Tensor& gradient : gradients) squares += sum_of_products(gradient, gradient);
  } else if (!gradients.empty()) {
    const Tensor norms = torch::stack(at::_foreach_norm(gradients)).to(torch::kCPU, torch::kFloat64);
    for (int64_t i = 0; i < norms.numel(); ++i) squares += std::pow(norms.const_data_ptr<double>()[i], 2);
  }
  if (gradient_sum_) {
    const auto sums = group().sum({loss, squares});
    loss = sums[0];
    squares = sums[1];
  }
  const double unscale = state_.loss_scale ? 1 / state_.loss_scale->value : 1;
  const double norm = std::sqrt(squares) * unscale;
  const bool clips = config_.max_grad_norm > 0 && norm > config_.max_grad_norm;
  if (std::isfinite(norm) && (clips || unscale != 1) && !gradients.empty())
    at::_foreach_mul_(gradients, clips ? config_.max_grad_norm / norm * unscale : unscale);
  return norm;
}

StepResult Trainer::step(const Batch& batch, double learning_rate) {
  decoder_->train();
  clear_gradients();
  // Dropout depends on the run's seed, the step and the rank alone, so that resuming needs no generator
  // state.
  const uint64_t seed = mix(seed_, 0xD0, static_cast<uint64_t>(state_.step));
  at::manual_seed(group().is_first() ? seed : mix(seed, static_cast<uint64_t>(group().rank())));
  StepResult result = accumulate(batch);
  const torch::NoGradGuard no_gradients;
  shards_.take_gradients();
  result.gradient_norm = clip_gradients(result.loss);
  result.skipped = !std::isfinite(result.loss) || !std::isfinite(result.gradient_norm);
  if (state_.loss_scale && result.labels > 0) state_.loss_scale->update(result.skipped);
  if (!result.skipped && result.labels > 0) update(learning_rate);
  ++state_.step;
  state_.epoch = batch.place.epoch;
  state_.epoch_step = batch.place.step + 1;
  state_.epoch_steps = batch.place.steps;
  if (!outer_optimizer_) count(result);
  return result;
}

void Trainer::update(double learning_rate) {
  const auto start = std::chrono::steady_clock::now();
  optimizer_.step(learning_rate);
  optimizer_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  shards_.exchange();
  update_average();
}

void Trainer::count(const StepResult& result) {
  state_.tokens += result.rows;
  if (result.skipped) {
    ++state_.skipped_steps;
    ++state_.consecutive_nonfinite_steps;
  } else {
    state_.consecutive_nonfinite_steps = 0;
  }
}

// A round counts as skipped if one rank could not make a single step.
StepResult Trainer::end_round(const std::vector<StepResult>& results) {
  if (!outer_optimizer_) return results.back();
  double loss = 0, norms = 0, made = 0, rows = 0, labels = 0;
  for (const StepResult& one : results) {
    rows += static_cast<double>(one.rows);
    if (one.skipped) continue;
    ++made;
    loss += one.loss * static_cast<double>(one.labels);
    labels += static_cast<double>(one.labels);
    norms += one.gradient_norm / static_cast<double>(results.size() * static_cast<size_t>(group().size()));
  }
  const auto sums = group().sum({loss, norms, made == 0 ? 1.0 : 0.0, rows, labels});
  StepResult round;
  round.loss = sums[0] / std::max(1.0, sums[4]);
  round.gradient_norm = sums[1];
  round.skipped = sums[2] > 0;
  round.rows = std::llround(sums[3]);
  round.labels = std::llround(sums[4]);
  outer_optimizer_->step();
  count(round);
  return round;
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

// This rank's part of the optimizer's state. With local steps each rank has a complete one of its own.
NamedTensors Trainer::own_optimizer_state() const {
  const std::string prefix = outer_optimizer_ && !group().is_first()
                                 ? fmt::format("rank-{}.optimizer.", group().rank())
                                 : "optimizer.";
  NamedTensors all;
  for (const auto& [name, tensor] : optimizer_.state()) all.emplace_back(prefix + name, tensor);
  return all;
}

// With local steps the ranks' loss scales differ.
nlohmann::json Trainer::progress() const {
  nlohmann::json all = state_.to_json();
  if (!outer_optimizer_ || !state_.loss_scale) return all;
  all["loss_scales"] = nlohmann::json::array();
  for (const std::string& one : group().gather(all.at("loss_scale").dump()))
    all["loss_scales"].push_back(nlohmann::json::parse(one));
  return all;
}

void Trainer::restore_progress(const nlohmann::json& progress) {
  const auto first_scale = state_.loss_scale;
  nlohmann::json own = progress;
  const auto rank = static_cast<size_t>(group().rank());
  if (outer_optimizer_ && own.contains("loss_scales") && rank < own["loss_scales"].size())
    own["loss_scale"] = own["loss_scales"][rank];
  state_ = TrainerState::from_json(own);
  // The precision may have changed since the checkpoint.
  if (first_scale.has_value() != state_.loss_scale.has_value()) state_.loss_scale = first_scale;
}

// With an EMA the model file holds the averaged weights, and the training state the raw ones.
CheckpointContent Trainer::snapshot(const Tokenizer& tokenizer) {
  CheckpointContent content;
  content.state = collect_tensors(group(), own_optimizer_state());
  content.progress = progress();
  if (!group().is_first()) return content;
  if (outer_optimizer_) {
    for (const auto& [name, tensor] : outer_optimizer_->state())
      content.state.emplace_back("optimizer." + name, tensor.clone());
  }
  swap_average();
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
  if (!average_.empty()) {
    for (const TrainedParameter& parameter : trained_)
      content.state.emplace_back("weights." + parameter.name, parameter.tensor.detach().cpu().clone());
  }
  return content;
}

void Trainer::restore(const Checkpoint* checkpoint) {
  const torch::NoGradGuard no_gradients;
  std::optional<Safetensors> state;
  if (group().is_first()) {
    if (has_adapters(*decoder_)) {
      checkpoint->load_adapters_into(*decoder_);
    } else {
      checkpoint->load_into(*decoder_);
    }
    state.emplace(checkpoint->state());
    for (size_t i = 0; i < average_.size(); ++i) {
      average_[i].copy_(trained_[i].tensor);
      trained_[i].tensor.copy_(state->tensor("weights." + trained_[i].name));
    }
  }
  for (const TrainedParameter& parameter : trained_) group().broadcast(parameter.tensor.detach());
  for (const Tensor& average : average_) group().broadcast(average);
  distribute_tensors(group(), own_optimizer_state(), [&](const std::string& name) {
    // Ranks that the run did not have before start with rank 0's state.
    return state->tensor(state->contains(name) ? name : name.substr(name.find("optimizer.")));
  });
  if (outer_optimizer_) {
    for (const auto& [name, momentum] : outer_optimizer_->state()) {
      if (state && state->contains("optimizer." + name)) momentum.copy_(state->tensor("optimizer." + name));
      group().broadcast(momentum);
    }
    outer_optimizer_->restart();
  }
  restore_progress(nlohmann::json::parse(
      group().broadcast(group().is_first() ? checkpoint->progress().dump() : std::string())));
}

}  // namespace calque

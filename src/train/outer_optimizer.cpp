#include "calque/train/outer_optimizer.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

namespace calque {

using torch::Tensor;

OuterOptimizer::OuterOptimizer(const std::vector<TrainedParameter>& parameters,
                               const DistributedConfig& config, DeviceGroup& group)
    : config_(config), group_(group) {
  for (const TrainedParameter& parameter : parameters) {
    parameters_.push_back(parameter.tensor.detach());
    starts_.push_back(parameters_.back().clone());
    momenta_.push_back(torch::zeros_like(parameters_.back()));
    state_.emplace_back(parameter.name + ".outer_momentum", momenta_.back());
  }
}

void OuterOptimizer::restart() {
  for (size_t i = 0; i < parameters_.size(); ++i) starts_[i].copy_(parameters_[i]);
}

void OuterOptimizer::step() {
  RECORD_USER_SCOPE("communication");
  const torch::NoGradGuard no_gradients;
  const auto type = config_.compress == Compression::bfloat16 ? torch::kBFloat16 : torch::kFloat32;
  std::vector<Tensor> changes;
  std::vector<DeviceGroup::Pending> pending;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor change = (starts_[i] - parameters_[i]) / group_.group().size();
    changes.push_back(change.to(group_.device(), type).contiguous());
    pending.push_back(group_.start_sum(changes.back()));
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    pending[i].wait();
    const Tensor gradient = changes[i].to(parameters_[i].device(), torch::kFloat32);
    momenta_[i].mul_(config_.outer_momentum).add_(gradient);
    starts_[i].sub_(gradient.add(momenta_[i], config_.outer_momentum), config_.outer_learning_rate);
    parameters_[i].copy_(starts_[i]);
  }
}

}  // namespace calque

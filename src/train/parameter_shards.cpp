#include "calque/train/parameter_shards.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

namespace calque {

ParameterShards::ParameterShards(const std::vector<TrainedParameter>& parameters, OptimizerKind optimizer,
                                 DeviceGroup& group, bool divided)
    : parameters_(parameters) {
  if (!divided || group.group().is_alone()) {
    own_ = parameters;
    return;
  }
  const auto by_rank = divide_parameters(parameters, optimizer, group.group().size());
  own_slices_ = by_rank[static_cast<size_t>(group.group().rank())];
  for (const ParameterSlice& slice : own_slices_) own_.push_back(view_of(parameters, slice));
  std::vector<std::vector<torch::Tensor>> shares;
  for (const auto& slices : by_rank) {
    shares.emplace_back();
    for (const ParameterSlice& slice : slices) shares.back().push_back(view_of(parameters, slice).tensor);
  }
  exchange_.emplace(shares, group);
}

void ParameterShards::take_gradients() {
  for (size_t i = 0; i < own_slices_.size(); ++i) {
    const torch::Tensor& whole = parameters_[own_slices_[i].parameter].tensor;
    if (own_[i].tensor.is_same(whole)) continue;
    const torch::Tensor gradient = whole.grad();
    own_[i].tensor.mutable_grad() =
        gradient.defined() ? gradient.slice(0, own_slices_[i].begin, own_slices_[i].end) : torch::Tensor();
  }
}

void ParameterShards::exchange() const {
  if (!exchange_) return;
  RECORD_USER_SCOPE("communication");
  exchange_->run();
}

}  // namespace calque

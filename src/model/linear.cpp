#include "calque/model/linear.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <cmath>

#include "calque/kernels/linear.h"
#include "calque/kernels/residual.h"
#include "calque/model/forward_context.h"

namespace calque {

torch::Tensor LowRankAdapter::add_to(torch::Tensor y, const torch::Tensor& x, int64_t begin, int64_t end,
                                     bool training) const {
  return add_low_rank(y, apply_dropout(x, dropout, training), down, up.slice(0, begin, end), scale);
}

Linear::Linear(int64_t inputs, int64_t outputs, bool with_bias) : inputs_(inputs), outputs_(outputs) {
  weight = register_parameter("weight", torch::empty({outputs, inputs}));
  if (with_bias) bias = register_parameter("bias", torch::zeros({outputs}));
}

torch::Tensor Linear::forward(const torch::Tensor& x) const {
  return packed_ ? multiply_packed(x) : forward_part(x, 0, outputs_);
}

torch::Tensor Linear::multiply_packed(const torch::Tensor& x) const {
  const torch::Tensor y = packed_->multiply(x);
  return packed_up_ ? add_residual(y, packed_up_->multiply(packed_down_->multiply(x))) : y;
}

torch::Tensor Linear::forward_part(const torch::Tensor& x, int64_t begin, int64_t end) const {
  const bool all = begin == 0 && end == outputs_;
  const auto part = [&](const torch::Tensor& rows) {
    return !rows.defined() || all ? rows : rows.slice(0, begin, end);
  };
  if (packed_) return multiply_packed(x).slice(1, begin, end);
  torch::Tensor y;  // [rows, end - begin]
  if (frozen_) {
    y = frozen_->multiply(x);
    if (bias.defined()) y = y + bias;
    if (!all) y = y.slice(1, begin, end);
  } else {
    y = linear(x, part(weight), part(bias), products);
  }
  return adapter ? adapter->add_to(y, x, begin, end, is_training()) : y;
}

void Linear::freeze(WeightPrecision precision) {
  if (packed_) return;  // has no gradients anyway
  weight.set_requires_grad(false);
  if (precision == WeightPrecision::float32) return;
  frozen_ = std::make_shared<FrozenMatrix>(weight, precision);
  release_weight();
}

void Linear::add_adapter(int64_t rank, double scale, double dropout, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const double deviation = 1 / std::sqrt(static_cast<double>(inputs_));
  adapter = LowRankAdapter{
      register_parameter("adapter_down", torch::empty({rank, inputs_}).normal_(0.0, deviation, generator)),
      register_parameter("adapter_up", torch::zeros({outputs_, rank})), scale, dropout};
}

void Linear::pack(WeightPrecision precision) {
  packed_ = std::make_shared<PackedMatrix>(merged_weight(), bias, precision);
  frozen_.reset();  // mutate: memory only
  release_adapter();
  if (weight.defined()) release_weight();
}

void Linear::share_packed(const Linear& other) {
  TORCH_CHECK(other.packed_ && other.inputs_ == inputs_ && other.outputs_ == outputs_,
              "a packed weight of the same shape is needed");
  packed_ = other.packed_;
  if (weight.defined()) release_weight();
}

void Linear::pack_adapter() {
  if (!adapter) return;
  packed_down_.emplace(adapter->down, torch::Tensor(), WeightPrecision::float32);
  packed_up_.emplace(adapter->scale * adapter->up, torch::Tensor(), WeightPrecision::float32);
  release_adapter();
}

void Linear::release_adapter() {
  adapter.reset();
  for (const char* name : {"adapter_down", "adapter_up"}) {
    if (parameters_.contains(name)) parameters_.erase(name);
  }
}

void Linear::release_weight() {
  parameters_.erase("weight");
  weight = torch::Tensor();
}

torch::Tensor Linear::merged_weight() const {
  const torch::NoGradGuard no_gradients;
  TORCH_CHECK(!packed_, "a packed weight has no float32 form");
  const torch::Tensor base = frozen_ ? frozen_->weight() : weight;
  return adapter ? base + adapter->scale * torch::mm(adapter->up, adapter->down) : base;
}

}  // namespace calque

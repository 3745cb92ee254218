#include "calque/model/linear.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <cmath>

#include "calque/kernels/trained_linear.h"

namespace calque {

Linear::Linear(int64_t inputs, int64_t outputs, bool with_bias) {
  weight = register_parameter("weight", torch::empty({outputs, inputs}));
  if (with_bias) bias = register_parameter("bias", torch::zeros({outputs}));
}

torch::Tensor Linear::forward(const torch::Tensor& x) const { return forward_part(x, 0, weight.size(0)); }

torch::Tensor Linear::forward_part(const torch::Tensor& x, int64_t begin, int64_t end) const {
  const bool all = begin == 0 && end == weight.size(0);
  const auto part = [&](const torch::Tensor& rows) {
    return !rows.defined() || all ? rows : rows.slice(0, begin, end);
  };
  torch::Tensor y;  // [rows, outputs]
  if (packed_ != nullptr) {
    y = frozen_linear(x, weight, bias, packed_);
    if (!all) y = y.slice(1, begin, end);  // a packed weight has no parts
  } else if (weight.scalar_type() != x.scalar_type()) {
    y = frozen_linear(x, part(weight), part(bias));
  } else {
    y = trained_linear(x, part(weight), part(bias), half_products);
  }
  if (!adapter_up.defined()) return y;
  const auto narrow = torch::linear(torch::dropout(x, adapter_dropout_, is_training()), adapter_down);
  return y.addmm_(narrow, part(adapter_up).t(), 1, adapter_scale_);
}

void Linear::freeze(Packing packing) {
  weight.set_requires_grad(false);
  if (packing == Packing::bfloat16) weight.set_data(weight.to(torch::kBFloat16));
  if (packing == Packing::int8) packed_ = c10::make_intrusive<PackedFrozen>(weight, packing);
}

void Linear::add_adapter(int64_t rank, double scale, double dropout, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto options = weight.options().dtype(torch::kFloat32).requires_grad(false);
  const double spread = 1 / std::sqrt(static_cast<double>(weight.size(1)));
  adapter_down = register_parameter(
      "adapter_down", torch::empty({rank, weight.size(1)}, options).normal_(0.0, spread, generator));
  adapter_up = register_parameter("adapter_up", torch::zeros({weight.size(0), rank}, options));
  adapter_scale_ = scale;
  adapter_dropout_ = dropout;
}

torch::Tensor Linear::merged_weight() const {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor wide = weight.to(torch::kFloat32);
  return adapter_up.defined() ? wide + adapter_scale_ * torch::mm(adapter_up, adapter_down) : wide;
}

}  // namespace calque

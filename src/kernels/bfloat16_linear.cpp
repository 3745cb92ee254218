#include "calque/kernels/bfloat16_linear.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Input and weight are rounded once per step: the backward pass reuses what the forward pass rounded.
class Bfloat16Linear : public torch::autograd::Function<Bfloat16Linear> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias) {
    const Tensor rounded_x = x.to(torch::kBFloat16), rounded_weight = weight.to(torch::kBFloat16);
    context->save_for_backward({weight.requires_grad() ? rounded_x : Tensor(), rounded_weight});
    context->saved_data["bias"] = bias.has_value();
    const Tensor y = torch::mm(rounded_x, rounded_weight.t()).to(x.scalar_type());
    return bias ? y.add_(*bias) : y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &dy = gradients[0], rounded_dy = dy.to(torch::kBFloat16);
    const auto needed = [&](size_t input) { return context->needs_input_grad(input); };
    return {needed(0) ? torch::mm(rounded_dy, saved[1]).to(dy.scalar_type()) : Tensor(),
            needed(1) ? torch::mm(rounded_dy.t(), saved[0]).to(dy.scalar_type()) : Tensor(),
            context->saved_data["bias"].toBool() && needed(2) ? dy.sum(0) : Tensor()};
  }
};

}  // namespace

Tensor bfloat16_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return Bfloat16Linear::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

Tensor reference::bfloat16_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor y = torch::linear(x.to(torch::kBFloat16), weight.to(torch::kBFloat16)).to(x.scalar_type());
  return bias.defined() ? y + bias : y;
}

}  // namespace calque

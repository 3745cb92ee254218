#include "calque/kernels/rounded_linear.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Input and weight are rounded once per step: the backward pass reuses what the forward pass rounded.
class RoundedLinear : public torch::autograd::Function<RoundedLinear> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias, torch::Dtype type) {
    const Tensor rounded_x = x.to(type), rounded_weight = weight.to(type);
    context->save_for_backward({weight.requires_grad() ? rounded_x : Tensor(), rounded_weight});
    context->saved_data["bias"] = bias.has_value();
    const Tensor y = torch::mm(rounded_x, rounded_weight.t()).to(x.scalar_type());
    return bias ? y.add_(*bias) : y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &dy = gradients[0], rounded_dy = dy.to(saved[1].scalar_type());
    const auto needed = [&](size_t input) { return context->needs_input_grad(input); };
    return {needed(0) ? torch::mm(rounded_dy, saved[1]).to(dy.scalar_type()) : Tensor(),
            needed(1) ? torch::mm(rounded_dy.t(), saved[0]).to(dy.scalar_type()) : Tensor(),
            context->saved_data["bias"].toBool() && needed(2) ? dy.sum(0) : Tensor(), Tensor()};
  }
};

}  // namespace

Tensor rounded_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, torch::Dtype type) {
  return RoundedLinear::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt, type);
}

Tensor reference::rounded_linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                 torch::Dtype type) {
  const Tensor y = torch::linear(x.to(type), weight.to(type)).to(x.scalar_type());
  return bias.defined() ? y + bias : y;
}

}  // namespace calque

#include "calque/kernels/trained_linear.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "calque/kernels/packed_matrix.h"
#include "fast.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t rows_worth_packing = 256;  // laying a weight out costs as much as some rows of its product

// The output and the input's gradient are products with the weight, which pays to be laid out for them; the
// weight's own gradient has no operand that is used twice, and is LibTorch's.
class PackedTrainedLinear : public torch::autograd::Function<PackedTrainedLinear> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x_given, const Tensor& weight,
                        const std::optional<Tensor>& bias) {
    const Tensor x = x_given.contiguous();
    context->save_for_backward({weight.requires_grad() ? x : Tensor(), weight});
    context->saved_data["bias"] = bias.has_value();
    return PackedMatrix(weight, bias.value_or(Tensor()), Packing::float32).multiply(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list kept = context->get_saved_variables();
    const Tensor &x = kept[0], &weight = kept[1], dy = gradients[0].contiguous();
    const auto wants = [&](size_t input) { return context->needs_input_grad(input); };
    return {wants(0) ? PackedMatrix(weight.t(), {}, Packing::float32).multiply(dy) : Tensor(),
            wants(1) ? torch::mm(dy.t(), x) : Tensor(),
            context->saved_data["bias"].toBool() && wants(2) ? dy.sum(0) : Tensor()};
  }
};

// The weight is rounded once a step: the backward pass has it from the forward one, and the input likewise.
class HalfTrainedLinear : public torch::autograd::Function<HalfTrainedLinear> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias) {
    const Tensor half_x = x.to(torch::kBFloat16), half_weight = weight.to(torch::kBFloat16);
    context->save_for_backward({weight.requires_grad() ? half_x : Tensor(), half_weight});
    context->saved_data["bias"] = bias.has_value();
    const Tensor y = torch::mm(half_x, half_weight.t()).to(x.scalar_type());
    return bias ? y.add_(*bias) : y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list kept = context->get_saved_variables();
    const Tensor &dy = gradients[0], half_dy = dy.to(torch::kBFloat16);
    const auto wants = [&](size_t input) { return context->needs_input_grad(input); };
    return {wants(0) ? torch::mm(half_dy, kept[1]).to(dy.scalar_type()) : Tensor(),
            wants(1) ? torch::mm(half_dy.t(), kept[0]).to(dy.scalar_type()) : Tensor(),
            context->saved_data["bias"].toBool() && wants(2) ? dy.sum(0) : Tensor()};
  }
};

}  // namespace

Tensor trained_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool half) {
  const auto optional_bias = bias.defined() ? std::optional(bias) : std::nullopt;
  if (half) return HalfTrainedLinear::apply(x, weight, optional_bias);
  if (!is_fast(x) || !is_fast(weight) || x.size(0) < rows_worth_packing)
    return reference::trained_linear(x, weight, bias);
  return PackedTrainedLinear::apply(x, weight, optional_bias);
}

Tensor reference::trained_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool half) {
  if (!half) return torch::linear(x, weight, bias);
  const Tensor y = torch::linear(x.to(torch::kBFloat16), weight.to(torch::kBFloat16)).to(x.scalar_type());
  return bias.defined() ? y + bias : y;
}

}  // namespace calque

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
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.has_value();
    return PackedMatrix(weight, bias.value_or(Tensor()), Packing::float32).multiply(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list kept = context->get_saved_variables();
    const Tensor &x = kept[0], &weight = kept[1], dy = gradients[0].contiguous();
    const auto wants = [&](size_t input) { return context->needs_input_grad(input); };
    return {wants(0) ? PackedMatrix(weight.t(), {}, Packing::float32).multiply(dy) : Tensor(),
            wants(1) ? torch::mm(dy.t(), x) : Tensor(),
            context->saved_data["bias"].toBool() ? dy.sum(0) : Tensor()};
  }
};

}  // namespace

Tensor trained_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!is_fast(x) || !is_fast(weight) || x.size(0) < rows_worth_packing || !torch::GradMode::is_enabled())
    return reference::trained_linear(x, weight, bias);
  return PackedTrainedLinear::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

Tensor reference::trained_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return torch::linear(x, weight, bias);
}

}  // namespace calque

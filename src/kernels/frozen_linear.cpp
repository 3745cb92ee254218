#include "calque/kernels/frozen_linear.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

namespace calque {
namespace {

using torch::Tensor;

class FrozenLinear : public torch::autograd::Function<FrozenLinear> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& weight) {
    context->save_for_backward({weight});
    return torch::mm(x, weight.to(x.scalar_type()).t());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const Tensor weight = context->get_saved_variables()[0];
    return {torch::mm(gradients[0], weight.to(gradients[0].scalar_type())), Tensor()};
  }
};

}  // namespace

Tensor frozen_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor y = FrozenLinear::apply(x, weight.detach());
  return bias.defined() ? y + bias.to(y.scalar_type()) : y;
}

}  // namespace calque

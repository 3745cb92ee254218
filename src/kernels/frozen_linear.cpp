#include "calque/kernels/frozen_linear.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "fast.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class WidenedLinear : public torch::autograd::Function<WidenedLinear> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight) {
    context->save_for_backward({weight});
    return torch::mm(x, weight.to(x.scalar_type()).t());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor weight = context->get_saved_variables()[0];
    return {torch::mm(gradients[0], weight.to(gradients[0].scalar_type())), Tensor()};
  }
};

class PackedLinear : public torch::autograd::Function<PackedLinear> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x,
                        const c10::intrusive_ptr<PackedFrozen>& packed) {
    context->saved_data["packed"] = c10::IValue::make_capsule(packed);
    return packed->forward.multiply(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto packed =
        c10::static_intrusive_pointer_cast<PackedFrozen>(context->saved_data["packed"].toCapsule());
    return {packed->backward.multiply(gradients[0]), Tensor()};
  }
};

}  // namespace

Tensor frozen_linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const c10::intrusive_ptr<PackedFrozen>& packed) {
  const Tensor y =
      packed && is_fast(x) ? PackedLinear::apply(x, packed) : WidenedLinear::apply(x, weight.detach());
  return bias.defined() ? y + bias.to(y.scalar_type()) : y;
}

}  // namespace calque

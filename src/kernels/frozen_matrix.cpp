#include "calque/kernels/frozen_matrix.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "calque/kernels/linear.h"

namespace calque {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

// Converts the bfloat16 weight to the input's type for each product, and does not keep the converted copy.
class WidenedProduct : public torch::autograd::Function<WidenedProduct> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight) {
    context->save_for_backward({weight});
    return matrix_product(x, weight.to(x.scalar_type()).t());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor weight = context->get_saved_variables()[0];
    return {matrix_product(gradients[0], weight.to(gradients[0].scalar_type())), Tensor()};
  }
};

template <class Packed>
class PackedProduct : public torch::autograd::Function<PackedProduct<Packed>> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const c10::intrusive_ptr<Packed>& packed) {
    context->saved_data["packed"] = c10::IValue::make_capsule(packed);
    return packed->forward.multiply(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto packed = c10::static_intrusive_pointer_cast<Packed>(context->saved_data["packed"].toCapsule());
    return {packed->backward.multiply(gradients[0]), Tensor()};
  }
};

}  // namespace

FrozenMatrix::FrozenMatrix(const Tensor& weight, WeightPrecision precision) {
  if (precision == WeightPrecision::int8) {
    packed_ = c10::make_intrusive<Packed>(weight.detach());
  } else {
    stored_ = weight.detach().to(torch::kBFloat16);
  }
}

Tensor FrozenMatrix::multiply(const Tensor& x) const {
  return packed_ ? PackedProduct<Packed>::apply(x, packed_) : WidenedProduct::apply(x, stored_);
}

Tensor FrozenMatrix::weight() const {
  return packed_ ? packed_->forward.unpacked() : stored_.to(torch::kFloat32);
}

}  // namespace calque

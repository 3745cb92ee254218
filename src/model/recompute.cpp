#include "calque/model/recompute.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <mutex>

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct SavedPart : torch::CustomClassHolder {
  ModelPart part;
  Tensor generator_state;  // from before the first run, so that the second draws the same
};

at::Generator generator_of(const Tensor& x) { return at::globalContext().defaultGenerator(x.device()); }

Tensor generator_state(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(at::Generator generator, const Tensor& state) {
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  // `anchor` wants gradients even where x does not: the weights inside the part may.
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<SavedPart>& saved) {
    saved->generator_state = generator_state(generator_of(x));
    context->save_for_backward({x});
    context->saved_data["saved"] = c10::IValue::make_capsule(saved);
    return saved->part(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor given = context->get_saved_variables()[0];
    const auto saved =
        c10::static_intrusive_pointer_cast<SavedPart>(context->saved_data["saved"].toCapsule());
    const Tensor x = given.detach().requires_grad_(given.requires_grad());
    const at::Generator generator = generator_of(x);
    const Tensor later = generator_state(generator);
    set_generator_state(generator, saved->generator_state);
    const torch::AutoGradMode with_gradients(true);
    torch::autograd::backward({saved->part(x)}, {gradients[0]});
    set_generator_state(generator, later);
    return {x.grad(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor recomputed(const ModelPart& part, const Tensor& x) {
  auto saved = c10::make_intrusive<SavedPart>();
  saved->part = part;
  return Recomputed::apply(x, torch::zeros({}, torch::requires_grad()), saved);
}

}  // namespace calque

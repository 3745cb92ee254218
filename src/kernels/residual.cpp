#include "calque/kernels/residual.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "calque/kernels/sum_of_products.h"
#include "calque/kernels/threads.h"
#include "fast.h"
#include "simd_loops.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class ScaledSum : public torch::autograd::Function<ScaledSum> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& y, const Tensor& factor) {
    context->save_for_backward({y, factor});
    return torch::addcmul(x, y, factor);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& dy = gradients[0];
    const auto needed = [&](size_t input) { return context->needs_input_grad(input); };
    const auto factor_gradient = [&] {  // infinity is for the trainer to find
      return torch::full_like(saved[1], static_cast<float>(sum_of_products(dy, saved[0])));
    };
    return {dy, needed(1) ? dy * saved[1] : Tensor(), needed(2) ? factor_gradient() : Tensor()};
  }
};

}  // namespace

Tensor add_scaled(const Tensor& x, const Tensor& y, const Tensor& factor) {
  return torch::GradMode::is_enabled() && is_fast(x) && y.is_contiguous() ? ScaledSum::apply(x, y, factor)
                                                                          : torch::addcmul(x, y, factor);
}

Tensor add_residual(const Tensor& x, const Tensor& branch) {
  if (torch::GradMode::is_enabled()) return x + branch;
  if (!is_fast(branch) || !is_fast(x) || !branch.is_contiguous() || !x.is_contiguous()) return branch.add_(x);
  constexpr int64_t values_per_task = 1 << 15;  // mutate: speed only
  const float* from = x.const_data_ptr<float>();
  float* sum = branch.mutable_data_ptr<float>();
  parallel_rows(branch.numel(), values_per_task,
                [&](int64_t begin, int64_t end) { simd::add(from + begin, end - begin, sum + begin); });
  return branch;
}

}  // namespace calque

#include "calque/kernels/gated.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "calque/kernels/simd_loops.h"
#include "fast.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t gated_rows_at_once = 32;

// Keeps its input only; the bent gate is cheaper to make again than to store.
class FastGated : public torch::autograd::Function<FastGated> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x_given, bool gelu) {
    RECORD_USER_SCOPE("activation");
    const Tensor x = x_given.contiguous();
    const int64_t width = x.size(1) / 2;
    const Tensor y = torch::empty({x.size(0), width}, x.options());
    const float* from = x.const_data_ptr<float>();
    float* to = y.mutable_data_ptr<float>();
    at::parallel_for(0, x.size(0), gated_rows_at_once, [&](int64_t begin, int64_t end) {
      simd::gated_forward(from, gelu, width, to, begin, end);
    });
    context->save_for_backward({x});
    context->saved_data["gelu"] = gelu;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    RECORD_USER_SCOPE("activation");
    const Tensor x = context->get_saved_variables()[0];
    const bool gelu = context->saved_data["gelu"].toBool();
    const Tensor dy = gradients[0].contiguous();
    const Tensor dx = torch::empty_like(x);
    const float* from = x.const_data_ptr<float>();
    const float* gradient = dy.const_data_ptr<float>();
    float* to = dx.mutable_data_ptr<float>();
    at::parallel_for(0, x.size(0), gated_rows_at_once, [&](int64_t begin, int64_t end) {
      simd::gated_backward(from, gradient, gelu, dy.size(1), to, begin, end);
    });
    return {dx, Tensor()};
  }
};

}  // namespace

Tensor gated(const Tensor& x, Gate gate) {
  return is_fast(x) ? FastGated::apply(x, gate == Gate::gelu) : reference::gated(x, gate);
}

Tensor reference::gated(const Tensor& x, Gate gate) {
  const auto halves = x.chunk(2, -1);
  return (gate == Gate::gelu ? torch::gelu(halves[0], "tanh") : torch::silu(halves[0])) * halves[1];
}

}  // namespace calque

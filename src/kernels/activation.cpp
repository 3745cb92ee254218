#include "calque/kernels/activation.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "activation_memory.h"
#include "calque/kernels/thread_pool.h"
#include "calque/kernels/threads.h"
#include "fast.h"
#include "simd_loops.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t rows_per_task = 32;         // mutate: speed only
constexpr int64_t values_per_task = 1 << 15;  // mutate: speed only; a multiple of all vectors

Tensor fast_gated(const Tensor& x, bool gelu) {
  RECORD_USER_SCOPE("activation");
  const int64_t size = x.size(1) / 2;
  const Tensor y = empty_activation({x.size(0), size});
  const float* from = x.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  parallel_rows(x.size(0), rows_per_task,
                [&](int64_t begin, int64_t end) { simd::gated_forward(from, gelu, size, to, begin, end); });
  return y;
}

// Saves its input only: computing act(gate) again is cheaper than storing it.
class FastGated : public torch::autograd::Function<FastGated> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& given, bool gelu) {
    const Tensor x = given.contiguous();
    context->save_for_backward({x});
    context->saved_data["gelu"] = gelu;
    return fast_gated(x, gelu);
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
    parallel_rows(x.size(0), rows_per_task, [&](int64_t begin, int64_t end) {
      simd::gated_backward(from, gradient, gelu, dy.size(1), to, begin, end);
    });
    return {dx, Tensor()};
  }
};

// Our own loop, whose results are bit-identical for any number of rows and threads.
Tensor fast_gelu(const Tensor& x) {
  const Tensor y = torch::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  parallel_rows(x.numel(), values_per_task, [&](int64_t begin, int64_t end) {
    simd::gelu_forward(from + begin, end - begin, to + begin);
  });
  return y;
}

class FastGelu : public torch::autograd::Function<FastGelu> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& given) {
    const Tensor x = given.contiguous();
    context->save_for_backward({x});
    return fast_gelu(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor x = context->get_saved_variables()[0], dy = gradients[0].contiguous();
    const Tensor dx = torch::empty_like(x);
    parallel_rows(x.numel(), values_per_task, [&](int64_t begin, int64_t end) {
      const SingleThreadedLibTorch single_threaded;
      const at::AutoDispatchBelowADInplaceOrView no_gradients;  // a setting of each thread
      const auto part = [&](const Tensor& whole) { return whole.view(-1).slice(0, begin, end); };
      Tensor to = part(dx);
      at::gelu_backward_out(to, part(dy), part(x), "tanh");
    });
    return {dx};
  }
};

}  // namespace

Tensor gated_activation(const Tensor& x, Gate gate) {
  if (!is_fast(x)) return reference::gated_activation(x, gate);
  const bool gelu = gate == Gate::gelu;
  return torch::GradMode::is_enabled() ? FastGated::apply(x, gelu) : fast_gated(x.contiguous(), gelu);
}

Tensor reference::gated_activation(const Tensor& x, Gate gate) {
  const auto halves = x.chunk(2, -1);
  return (gate == Gate::gelu ? torch::gelu(halves[0], "tanh") : torch::silu(halves[0])) * halves[1];
}

Tensor gelu_activation(const Tensor& x) {
  if (!is_fast(x)) return torch::gelu(x, "tanh");
  return torch::GradMode::is_enabled() ? FastGelu::apply(x) : fast_gelu(x.contiguous());
}

}  // namespace calque

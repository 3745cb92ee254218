#include "calque/kernels/norm.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "activation_memory.h"
#include "calque/kernels/threads.h"
#include "fast.h"
#include "simd_loops.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t rows_per_task = 64;  // mutate: speed only

// inverses: [rows], receives 1 / RMS of each row for the backward pass; undefined without one.
Tensor fast_rms_norm(const Tensor& x, const Tensor& weight, double epsilon, const Tensor& inverses) {
  RECORD_USER_SCOPE("norms");
  const Tensor y = empty_activation(x.sizes());
  const float* from = x.const_data_ptr<float>();
  const float* factors = weight.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  float* saved = inverses.defined() ? inverses.mutable_data_ptr<float>() : nullptr;
  parallel_rows(x.size(0), rows_per_task, [&](int64_t begin, int64_t end) {
    simd::rms_norm_forward(from, factors, static_cast<float>(epsilon), x.size(1), to, saved, begin, end);
  });
  return y;
}

class FastRmsNorm : public torch::autograd::Function<FastRmsNorm> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& given, const Tensor& weight, double epsilon) {
    const Tensor x = given.contiguous();
    const Tensor inverses = torch::empty({x.size(0)}, x.options());
    context->save_for_backward({x, weight, inverses});
    return fast_rms_norm(x, weight, epsilon, inverses);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    RECORD_USER_SCOPE("norms");
    const variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &inverses = saved[2];
    const Tensor dy = gradients[0].contiguous();
    const Tensor dx = torch::empty_like(x);
    // Each share has its own part of the weight's gradient. The parts are added in order, so that the result
    // has the same bits for any number of threads.
    constexpr int64_t share_rows = 256;
    const int64_t rows = x.size(0), width = x.size(1), shares = (rows + share_rows - 1) / share_rows;
    const Tensor partial = torch::zeros({shares, width}, x.options());
    const float* from = x.const_data_ptr<float>();
    const float* factors = weight.const_data_ptr<float>();
    const float* inverse = inverses.const_data_ptr<float>();
    const float* gradient = dy.const_data_ptr<float>();
    float* to = dx.mutable_data_ptr<float>();
    float* sums = partial.mutable_data_ptr<float>();
    parallel_rows(rows, share_rows, [&](int64_t begin, int64_t end) {
      simd::rms_norm_backward(from, factors, inverse, gradient, width, to, sums + begin / share_rows * width,
                              begin, end);
    });
    return {dx, partial.sum(0), Tensor()};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  if (!is_fast(x)) return torch::rms_norm(x, {x.size(-1)}, weight, epsilon);
  return torch::GradMode::is_enabled() ? FastRmsNorm::apply(x, weight, epsilon)
                                       : fast_rms_norm(x.contiguous(), weight, epsilon, {});
}

// Inference uses our own loop, whose results are bit-identical for any number of rows.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  if (!is_fast(x) || torch::GradMode::is_enabled() || !x.is_contiguous())
    return torch::layer_norm(x, {x.size(-1)}, weight, bias, epsilon);
  const Tensor y = torch::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  parallel_rows(x.size(0), rows_per_task, [&](int64_t begin, int64_t end) {
    simd::layer_norm_forward(from, weight.const_data_ptr<float>(), bias.const_data_ptr<float>(),
                             static_cast<float>(epsilon), x.size(1), to, begin, end);
  });
  return y;
}

Tensor reference::rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  return x * torch::rsqrt(x.square().mean(-1, true) + epsilon) * weight;
}

}  // namespace calque

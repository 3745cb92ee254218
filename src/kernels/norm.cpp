#include "calque/kernels/norm.h"

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

constexpr int64_t norm_rows_at_once = 64;

class FastRmsNorm : public torch::autograd::Function<FastRmsNorm> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x_given, const Tensor& weight,
                        double epsilon) {
    RECORD_USER_SCOPE("norms");
    const Tensor x = x_given.contiguous();
    const Tensor y = torch::empty_like(x);
    const Tensor inverses = torch::empty({x.size(0)}, x.options());
    const float* from = x.const_data_ptr<float>();
    const float* factors = weight.const_data_ptr<float>();
    float* to = y.mutable_data_ptr<float>();
    float* kept = inverses.mutable_data_ptr<float>();
    at::parallel_for(0, x.size(0), norm_rows_at_once, [&](int64_t begin, int64_t end) {
      simd::rms_norm_forward(from, factors, static_cast<float>(epsilon), x.size(1), to, kept, begin, end);
    });
    context->save_for_backward({x, weight, inverses});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    RECORD_USER_SCOPE("norms");
    const variable_list kept = context->get_saved_variables();
    const Tensor &x = kept[0], &weight = kept[1], &inverses = kept[2];
    const Tensor dy = gradients[0].contiguous();
    const Tensor dx = torch::empty_like(x);
    // A share of the weight's gradient for each thread, summed in their order: the same bits for as many
    // threads.
    const int64_t rows = x.size(0), width = x.size(1), shares = at::get_num_threads();
    const int64_t share_rows = (rows + shares - 1) / shares;
    const Tensor partial = torch::zeros({shares, width}, x.options());
    const float* from = x.const_data_ptr<float>();
    const float* factors = weight.const_data_ptr<float>();
    const float* inverse = inverses.const_data_ptr<float>();
    const float* gradient = dy.const_data_ptr<float>();
    float* to = dx.mutable_data_ptr<float>();
    float* sums = partial.mutable_data_ptr<float>();
    at::parallel_for(0, shares, 1, [&](int64_t begin, int64_t end) {
      for (int64_t share = begin; share < end; ++share) {
        simd::rms_norm_backward(from, factors, inverse, gradient, width, to, sums + share * width,
                                share * share_rows, std::min(rows, (share + 1) * share_rows));
      }
    });
    return {dx, partial.sum(0), Tensor()};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  return is_fast(x) ? FastRmsNorm::apply(x, weight, epsilon) : reference::rms_norm(x, weight, epsilon);
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  return torch::layer_norm(x, {x.size(-1)}, weight, bias, epsilon);
}

Tensor reference::rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  return x * torch::rsqrt(x.square().mean(-1, true) + epsilon) * weight;
}

}  // namespace calque

#include "calque/kernels/residual.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <numeric>
#include <vector>

#include "calque/kernels/thread_pool.h"
#include "calque/kernels/threads.h"
#include "fast.h"
#include "simd_loops.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t values_per_task = 1 << 15;  // of which each has a sum of its own

class ScaledSum : public torch::autograd::Function<ScaledSum> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& y, const Tensor& factor) {
    context->save_for_backward({y, factor});
    return torch::addcmul(x, y, factor);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor dy = gradients[0].contiguous(), flat_dy = dy.view(-1), flat_y = saved[0].view(-1);
    std::vector<double> sums(static_cast<size_t>((dy.numel() + values_per_task - 1) / values_per_task));
    parallel_rows(dy.numel(), values_per_task, [&](int64_t begin, int64_t end) {
      const SingleThreadedLibTorch single_threaded;
      sums[static_cast<size_t>(begin / values_per_task)] =
          at::dot(flat_dy.slice(0, begin, end), flat_y.slice(0, begin, end)).item<double>();
    });
    const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
    return {dy, dy * saved[1], torch::full_like(saved[1], sum)};
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
  const float* from = x.const_data_ptr<float>();
  float* sum = branch.mutable_data_ptr<float>();
  parallel_rows(branch.numel(), values_per_task,
                [&](int64_t begin, int64_t end) { simd::add(from + begin, end - begin, sum + begin); });
  return branch;
}

}  // namespace calque

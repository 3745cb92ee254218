#include "calque/kernels/residual.h"

#include <torch/types.h>

#include "calque/kernels/threads.h"
#include "fast.h"
#include "simd_loops.h"

namespace calque {

torch::Tensor add_residual(const torch::Tensor& x, const torch::Tensor& branch) {
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

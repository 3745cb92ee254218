#include "calque/kernels/sum_of_products.h"

#include <ATen/ATen.h>

#include <numeric>
#include <vector>

#include "calque/kernels/thread_pool.h"
#include "calque/kernels/threads.h"

namespace calque {

double sum_of_products(const torch::Tensor& a, const torch::Tensor& b) {
  constexpr int64_t task = 1 << 15;  // values, which have a sum of their own
  const torch::Tensor flat_a = a.detach().reshape(-1), flat_b = b.detach().reshape(-1);
  std::vector<double> sums(static_cast<size_t>((flat_a.numel() + task - 1) / task));
  parallel_rows(flat_a.numel(), task, [&](int64_t begin, int64_t end) {
    const SingleThreadedLibTorch single_threaded;
    sums[static_cast<size_t>(begin / task)] =
        at::dot(flat_a.slice(0, begin, end), flat_b.slice(0, begin, end)).item<double>();
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace calque

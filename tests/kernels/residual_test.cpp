#include "calque/kernels/residual.h"

#include <gtest/gtest.h>

#include "calque/kernels/linear.h"
#include "calque/kernels/norm.h"
#include "calque/kernels/threads.h"
#include "kernels/compare.h"

namespace calque {

TEST(Residual, AScaledSumMatchesLibTorchsValuesAndGradients) {
  at::manual_seed(4);
  for (const int64_t rows : {1, 30, 700}) {  // 700 · 64 values are several tasks
    const auto x = torch::randn({rows, 64}), y = torch::randn({rows, 64}), factor = torch::randn({1})[0];
    expect_same(
        {x, y, factor}, [](const auto& in) { return add_scaled(in[0], in[1], in[2]); },
        [](const auto& in) { return in[0] + in[1] * in[2]; }, 1e-5);
  }
}

// What training adds up in parallel is added up in the same order whoever does it.
TEST(Residual, NormsProductsAndScaledSumsHaveTheSameBitsForAnyNumberOfThreads) {
  at::manual_seed(5);
  const auto x = torch::randn({1500, 96}), weight = torch::randn({800, 96}), scale = torch::randn({96}),
             factor = torch::randn({1})[0];
  const int before = num_threads();
  std::vector<torch::Tensor> first;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    std::vector<torch::Tensor> leaves;
    for (const auto& one : {x, weight, scale, factor})
      leaves.push_back(one.detach().clone().set_requires_grad(true));
    const auto y = add_scaled(rms_norm(leaves[0], leaves[2], 1e-5), leaves[0], leaves[3]);
    calque::linear(y, leaves[1]).square().mean().backward();
    std::vector<torch::Tensor> found = {y.detach()};
    for (const auto& leaf : leaves) found.push_back(leaf.grad());
    if (first.empty()) first = found;
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(torch::equal(found[i], first[i])) << i << ", " << threads;
  }
  set_num_threads(before);
}

}  // namespace calque

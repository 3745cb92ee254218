#include "calque/kernels/frozen_matrix.h"

#include <gtest/gtest.h>

#include <array>

namespace calque {

TEST(FrozenMatrix, Bfloat16MultipliesByTheRoundedWeight) {
  const auto weight = torch::randn({7, 5}), rounded = weight.to(torch::kBFloat16).to(torch::kFloat32);
  const FrozenMatrix frozen(weight, WeightPrecision::bfloat16);
  auto x = torch::randn({3, 5}).set_requires_grad(true), y = x.detach().clone().set_requires_grad(true);
  EXPECT_TRUE(torch::equal(frozen.weight(), rounded));
  frozen.multiply(x).square().sum().backward();
  torch::linear(y, rounded).square().sum().backward();
  EXPECT_LT((x.grad() - y.grad()).abs().max().item<double>(), 1e-5);
}

TEST(FrozenMatrix, Int8OutputAndGradientAreCloseToFloat32) {
  at::manual_seed(6);
  for (const auto& [outputs, inputs, rows] :
       {std::array{7, 5, 3}, std::array{40, 33, 1}, std::array{131, 64, 301}, std::array{64, 1000, 20}}) {
    const auto weight = torch::randn({outputs, inputs});
    const FrozenMatrix frozen(weight, WeightPrecision::int8);
    auto x = torch::randn({rows, inputs}).set_requires_grad(true);
    auto y = x.detach().clone().set_requires_grad(true);
    const auto out = frozen.multiply(x), plain = torch::linear(y, weight);
    const auto dy = torch::randn({rows, outputs});
    out.backward(dy);
    plain.backward(dy);
    // Each weight is off by at most half a step; over the inputs these errors grow as the square root.
    const auto relative = [](const torch::Tensor& a, const torch::Tensor& b) {
      return ((a - b).norm() / b.norm()).item<double>();
    };
    EXPECT_LT(relative(out, plain), 0.012);
    EXPECT_LT(relative(frozen.weight(), weight), 0.012);
    EXPECT_LT(relative(x.grad(), y.grad()), 0.012);
  }
}

}  // namespace calque

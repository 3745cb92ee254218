#include "calque/kernels/frozen_linear.h"

#include <gtest/gtest.h>

#include <array>

namespace calque {

TEST(FrozenLinear, EqualsTheProductWithTheWidenedWeight) {
  const auto weight = torch::randn({7, 5}).to(torch::kBFloat16);
  auto x = torch::randn({3, 5}).set_requires_grad(true), y = x.detach().clone().set_requires_grad(true);
  const auto bias = torch::randn({7});
  frozen_linear(x, weight, bias).square().sum().backward();
  torch::linear(y, weight.to(torch::kFloat32), bias).square().sum().backward();
  EXPECT_LT((x.grad() - y.grad()).abs().max().item<double>(), 1e-5);
}

TEST(FrozenLinear, PackedEqualsThePlainProductForwardAndBackward) {
  at::manual_seed(6);
  for (const auto& [outputs, inputs, rows] :
       {std::array{7, 5, 3}, std::array{40, 33, 1}, std::array{131, 64, 301}, std::array{64, 1000, 20}}) {
    const auto weight = torch::randn({outputs, inputs}), bias = torch::randn({outputs});
    const auto packed = c10::make_intrusive<PackedFrozen>(weight, Packing::int8);
    auto x = torch::randn({rows, inputs}).set_requires_grad(true);
    auto y = x.detach().clone().set_requires_grad(true);
    const auto out = frozen_linear(x, weight, bias, packed), plain = torch::linear(y, weight, bias);
    const auto dy = torch::randn({rows, outputs});
    out.backward(dy);
    plain.backward(dy);
    // A weight is off by up to half of its 255 steps; the sum of that over the inputs goes by its root.
    const auto relative = [](const torch::Tensor& a, const torch::Tensor& b) {
      return ((a - b).norm() / b.norm()).item<double>();
    };
    EXPECT_LT(relative(out, plain), 0.012);
    EXPECT_LT(relative(x.grad(), y.grad()), 0.012);
  }
}

}  // namespace calque

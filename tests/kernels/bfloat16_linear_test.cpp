#include "calque/kernels/bfloat16_linear.h"

#include <gtest/gtest.h>

#include "kernels/compare.h"

namespace calque {

TEST(Bfloat16Linear, ValuesAndGradientsMatchTheReference) {
  at::manual_seed(12);
  const auto x = torch::randn({70, 33}), weight = torch::randn({40, 33}), bias = torch::randn({40});
  expect_same(
      {x, weight, bias}, [](const auto& in) { return bfloat16_linear(in[0], in[1], in[2]); },
      [](const auto& in) { return reference::bfloat16_linear(in[0], in[1], in[2]); }, 1e-5);
  expect_close(bfloat16_linear(x, weight, bias), torch::linear(x, weight, bias), 2e-2, "output");
  EXPECT_GT(worst_difference(bfloat16_linear(x, weight, bias), torch::linear(x, weight, bias)), 1e-4);
}

TEST(Bfloat16Linear, AFrozenWeightGetsNoGradient) {
  at::manual_seed(10);
  const auto weight = torch::randn({40, 20}), bias = torch::randn({40});
  const auto x = torch::randn({30, 20}).set_requires_grad(true);
  bfloat16_linear(x, weight, bias).sum().backward();
  EXPECT_FALSE(weight.grad().defined());
  expect_close(x.grad(), weight.sum(0).expand({30, 20}), 2e-2, "gradient");
}

}  // namespace calque

#include "calque/kernels/linear.h"

#include <gtest/gtest.h>

#include "kernels/compare.h"

namespace calque {

TEST(Linear, ValuesAndGradientsMatchTheReference) {
  at::manual_seed(12);
  const auto x = torch::randn({70, 33}), weight = torch::randn({40, 33}), bias = torch::randn({40});
  for (const auto type : {torch::kBFloat16, torch::kFloat16}) {
    expect_same(
        {x, weight, bias}, [&](const auto& in) { return linear(in[0], in[1], in[2], type); },
        [&](const auto& in) { return reference::linear(in[0], in[1], in[2], type); }, 1e-5);
    const auto exact = torch::linear(x, weight, bias), rounded = linear(x, weight, bias, type);
    const double unit = type == torch::kBFloat16 ? 2e-2 : 2e-3;
    expect_close(rounded, exact, unit, "output");
    EXPECT_GT(worst_difference(rounded, exact), unit / 200);
  }
}

TEST(Linear, AFrozenWeightGetsNoGradient) {
  at::manual_seed(10);
  const auto weight = torch::randn({40, 20}), bias = torch::randn({40});
  const auto x = torch::randn({30, 20}).set_requires_grad(true);
  linear(x, weight, bias, torch::kBFloat16).sum().backward();
  EXPECT_FALSE(weight.grad().defined());
  expect_close(x.grad(), weight.sum(0).expand({30, 20}), 2e-2, "gradient");
}

}  // namespace calque

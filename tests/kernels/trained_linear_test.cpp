#include "calque/kernels/trained_linear.h"

#include <gtest/gtest.h>

#include <array>

#include "kernels/compare.h"

namespace calque {

TEST(TrainedLinear, ValuesAndGradientsMatchTheReference) {
  at::manual_seed(8);
  for (const auto& [outputs, inputs, rows] : {std::array{7, 5, 256}, std::array{40, 33, 301},
                                              std::array{131, 64, 700}, std::array{64, 1500, 1000}}) {
    const auto x = torch::randn({rows, inputs}), weight = torch::randn({outputs, inputs});
    const auto plain = [](const auto& in) { return reference::trained_linear(in[0], in[1], {}); };
    const auto plain_bias = [](const auto& in) { return reference::trained_linear(in[0], in[1], in[2]); };
    expect_same(
        {x, weight}, [](const auto& in) { return trained_linear(in[0], in[1], {}); }, plain, 1e-5);
    expect_same(
        {x, weight, torch::randn({outputs})},
        [](const auto& in) { return trained_linear(in[0], in[1], in[2]); }, plain_bias, 1e-5);
  }
}

TEST(TrainedLinear, InHalfPrecisionValuesAndGradientsMatchTheReference) {
  at::manual_seed(12);
  const auto x = torch::randn({70, 33}), weight = torch::randn({40, 33}), bias = torch::randn({40});
  expect_same(
      {x, weight, bias}, [](const auto& in) { return trained_linear(in[0], in[1], in[2], true); },
      [](const auto& in) { return reference::trained_linear(in[0], in[1], in[2], true); }, 1e-5);
  expect_close(trained_linear(x, weight, bias, true), torch::linear(x, weight, bias), 2e-2, "rounded");
  EXPECT_GT(worst_difference(trained_linear(x, weight, bias, true), torch::linear(x, weight, bias)), 1e-4);
}

TEST(TrainedLinear, APartOfAMatrixIsItsRows) {
  at::manual_seed(9);
  auto weight = torch::randn({48, 20}).set_requires_grad(true);
  auto plain_weight = weight.detach().clone().set_requires_grad(true);
  const auto x = torch::randn({300, 20}).set_requires_grad(true), dy = torch::randn({300, 20});
  trained_linear(x, weight.slice(0, 10, 30), {}).backward(dy);
  torch::linear(x, plain_weight.slice(0, 10, 30)).backward(dy);
  expect_close(weight.grad(), plain_weight.grad(), 1e-5, "gradient");
}

TEST(TrainedLinear, AFrozenWeightGetsNoGradientAndTheBitsAreTheSameWithoutGradients) {
  at::manual_seed(10);
  const auto weight = torch::randn({40, 2000}), bias = torch::randn({40});
  const auto x = torch::randn({300, 2000}).set_requires_grad(true);
  const auto y = trained_linear(x, weight, bias);
  y.sum().backward();
  EXPECT_FALSE(weight.grad().defined());
  expect_close(x.grad(), weight.sum(0).expand({300, 2000}), 1e-5, "gradient");
  const torch::NoGradGuard no_gradients;
  EXPECT_TRUE(torch::equal(y, trained_linear(x, weight, bias)));
}

}  // namespace calque

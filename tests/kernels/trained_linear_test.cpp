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

TEST(TrainedLinear, APartOfAMatrixIsItsRows) {
  at::manual_seed(9);
  auto weight = torch::randn({48, 20}).set_requires_grad(true);
  const auto x = torch::randn({300, 20}).set_requires_grad(true);
  const auto part = trained_linear(x, weight.slice(0, 10, 30), {});
  expect_close(part, torch::linear(x, weight).slice(1, 10, 30), 1e-5, "part");
  part.sum().backward();
  EXPECT_EQ(weight.grad().slice(0, 0, 10).abs().sum().item<double>(), 0);
}

}  // namespace calque

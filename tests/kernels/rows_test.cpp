// The kernels that work row by row: RMSNorm, gated activations, cross-entropy.
#include <gtest/gtest.h>

#include "calque/kernels/activation.h"
#include "calque/kernels/linear_cross_entropy.h"
#include "calque/kernels/norm.h"
#include "kernels/compare.h"

namespace calque {

TEST(RmsNorm, ValuesAndGradientsMatchReference) {
  at::manual_seed(1);
  for (const auto& [rows, width] :
       std::vector<std::pair<int, int>>{{1, 1}, {5, 7}, {130, 64}, {33, 100}, {1000, 256}}) {
    expect_same(
        {torch::randn({rows, width}), torch::randn({width})},
        [](const auto& in) { return rms_norm(in[0], in[1], 1e-5); },
        [](const auto& in) { return reference::rms_norm(in[0], in[1], 1e-5); }, 1e-4);
  }
}

TEST(RmsNorm, AZeroRowStaysZero) {
  EXPECT_EQ(rms_norm(torch::zeros({2, 8}), torch::ones({8}), 1e-5).abs().max().item<float>(), 0);
}

TEST(GatedActivation, ValuesAndGradientsMatchReference) {
  at::manual_seed(2);
  for (const Gate gate : {Gate::silu, Gate::gelu}) {
    for (const auto& [rows, width] : std::vector<std::pair<int, int>>{{1, 1}, {5, 7}, {130, 64}, {40, 100}}) {
      expect_same(
          {torch::randn({rows, 2 * width}) * 3},
          [&](const auto& in) { return gated_activation(in[0], gate); },
          [&](const auto& in) { return reference::gated_activation(in[0], gate); }, 1e-5);
    }
  }
  const auto extreme = torch::tensor({{-1000.0F, 1000.0F, 2.0F, 3.0F}});
  EXPECT_NEAR(gated_activation(extreme, Gate::silu)[0][0].item<float>(), 0, 1e-30);
  EXPECT_EQ(gated_activation(extreme, Gate::silu)[0][1].item<float>(), 3000);
}

TEST(GeluActivation, ValuesAndGradientsMatchLibTorchs) {
  at::manual_seed(6);
  for (const auto& [rows, width] : std::vector<std::pair<int, int>>{{1, 1}, {5, 7}, {501, 160}}) {
    expect_same(
        {torch::randn({rows, width}) * 3}, [](const auto& in) { return gelu_activation(in[0]); },
        [](const auto& in) { return torch::gelu(in[0], "tanh"); }, 1e-6);
  }
}

TEST(CrossEntropyLoss, ValuesAndGradientsMatchReference) {
  at::manual_seed(3);
  for (const double smoothing : {0.0, 0.1}) {
    for (const auto& [rows, vocabulary] :
         std::vector<std::pair<int, int>>{{1, 2}, {7, 13}, {300, 1001}, {257, 64}}) {
      const auto labels = torch::randint(vocabulary, {rows}, torch::kInt64);
      const auto hidden = torch::randn({rows, 24}), weight = torch::randn({vocabulary, 24});
      expect_same(
          {hidden, weight},
          [&](const auto& in) { return linear_cross_entropy(in[0], in[1], labels, smoothing).smoothed; },
          [&](const auto& in) {
            return reference::linear_cross_entropy(in[0], in[1], labels, smoothing).smoothed;
          },
          2e-5);
      expect_close(linear_cross_entropy(hidden, weight, labels, smoothing).plain,
                   reference::linear_cross_entropy(hidden, weight, labels, smoothing).plain, 1e-6,
                   "plain loss");
    }
  }
}

TEST(CrossEntropyLoss, Bfloat16ValuesAndGradientsMatchReference) {
  at::manual_seed(4);
  const auto labels = torch::randint(1001, {300}, torch::kInt64);
  const auto hidden = torch::randn({300, 24}), weight = torch::randn({1001, 24});
  expect_same(
      {hidden, weight},
      [&](const auto& in) {
        return linear_cross_entropy(in[0], in[1], labels, 0.1, torch::kBFloat16).smoothed;
      },
      [&](const auto& in) {
        return reference::linear_cross_entropy(in[0], in[1], labels, 0.1, torch::kBFloat16).smoothed;
      },
      1e-2);
  const double wide = linear_cross_entropy(hidden, weight, labels, 0.1).plain.item<double>(),
               rounded =
                   linear_cross_entropy(hidden, weight, labels, 0.1, torch::kBFloat16).plain.item<double>();
  EXPECT_NEAR(rounded / wide, 1, 1e-3);
  EXPECT_NE(rounded, wide);
}

TEST(CrossEntropyLoss, IsLogVocabularyForEqualLogits) {
  const auto loss = linear_cross_entropy(torch::zeros({4, 8}), torch::randn({10, 8}),
                                         torch::zeros({4}, torch::kInt64), 0.1);
  EXPECT_NEAR(loss.plain.item<double>(), 4 * std::log(10.0), 1e-5);
  EXPECT_NEAR(loss.smoothed.item<double>(), 4 * std::log(10.0), 1e-5);
}

TEST(CrossEntropyLoss, AFrozenWeightGetsNoGradientAndOthersAreUnchanged) {
  at::manual_seed(4);
  const auto labels = torch::randint(50, {300}, torch::kInt64);
  const auto weight = torch::randn({50, 8}), given = torch::randn({300, 8});
  const auto gradient = [&](bool frozen) {
    auto hidden = given.clone().set_requires_grad(true);
    auto matrix = weight.clone().set_requires_grad(!frozen);
    linear_cross_entropy(hidden, matrix, labels, 0.1).smoothed.backward();
    EXPECT_EQ(matrix.grad().defined(), !frozen);
    return hidden.grad();
  };
  expect_close(gradient(true), gradient(false), 1e-7, "gradient of hidden");
}

TEST(CrossEntropyLoss, HugeLogitsStayFinite) {
  auto hidden = (torch::randn({4, 8}) * 1e3).set_requires_grad(true);
  const auto loss =
      linear_cross_entropy(hidden, torch::randn({30, 8}) * 1e2, torch::zeros({4}, torch::kInt64), 0.1);
  loss.smoothed.backward();
  EXPECT_TRUE(loss.smoothed.isfinite().item<bool>());
  EXPECT_TRUE(hidden.grad().isfinite().all().item<bool>());
}

}  // namespace calque

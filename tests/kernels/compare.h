// Compares a fast kernel with its reference: values and gradients, by the largest difference.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

namespace calque {

inline double worst_difference(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.sizes() != b.sizes()) return 1e30;
  return a.numel() == 0 ? 0 : (a - b).abs().max().item<double>();
}

inline void expect_close(const torch::Tensor& found, const torch::Tensor& expected, double tolerance,
                         const std::string& what) {
  EXPECT_LT(worst_difference(found, expected), tolerance * (1 + expected.abs().max().item<double>())) << what;
}

// Runs `fast` and `plain` on the same inputs and compares their outputs and gradients. The loss is the sum of
// the output times fixed random weights.
using Kernel = std::function<torch::Tensor(const std::vector<torch::Tensor>&)>;
inline void expect_same(const std::vector<torch::Tensor>& inputs, const Kernel& fast, const Kernel& plain,
                        double tolerance) {
  const auto run = [&](const Kernel& kernel) {
    std::vector<torch::Tensor> leaves;
    for (const auto& input : inputs) leaves.push_back(input.detach().clone().set_requires_grad(true));
    const torch::Tensor out = kernel(leaves);
    at::manual_seed(11);
    (out * torch::randn_like(out)).sum().backward();
    std::vector<torch::Tensor> results = {out.detach()};
    for (const auto& leaf : leaves) results.push_back(leaf.grad());
    return results;
  };
  const auto found = run(fast), expected = run(plain);
  for (size_t i = 0; i < found.size(); ++i) {
    expect_close(found[i], expected[i], tolerance,
                 i == 0 ? "value" : "gradient of input " + std::to_string(i - 1));
  }
}

}  // namespace calque

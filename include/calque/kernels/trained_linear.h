// A matrix product with a weight that is learnt.
#pragma once

#include <torch/types.h>

namespace calque {

// x: [rows, inputs]; weight: [outputs, inputs]; bias: [outputs] or undefined. Gives [rows, outputs].
torch::Tensor trained_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

namespace reference {
torch::Tensor trained_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);
}  // namespace reference

}  // namespace calque

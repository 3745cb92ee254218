// A matrix product with a weight that is learnt.
#pragma once

#include <torch/types.h>

namespace calque {

// x: [rows, inputs]; weight: [outputs, inputs]; bias: [outputs] or undefined. Gives [rows, outputs]. `half`:
// what is multiplied is rounded to bfloat16, forward and backward; weight, gradients and what comes out stay
// float32.
torch::Tensor trained_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                             bool half = false);

namespace reference {
torch::Tensor trained_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                             bool half = false);
}  // namespace reference

}  // namespace calque

// A matrix product whose operands are rounded to bfloat16, forward and backward. Weight, gradients and
// output stay float32.
#pragma once

#include <torch/types.h>

namespace calque {

// x: [rows, inputs]; weight: [outputs, inputs]; bias: [outputs] or undefined. Returns [rows, outputs].
torch::Tensor bfloat16_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

namespace reference {
torch::Tensor bfloat16_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);
}  // namespace reference

}  // namespace calque

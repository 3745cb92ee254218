// A matrix product whose operands are rounded to bfloat16 or float16, forward and backward. Weight, gradients
// and output stay float32.
#pragma once

#include <torch/types.h>

namespace calque {

// x: [rows, inputs]; weight: [outputs, inputs]; bias: [outputs] or undefined; type: bfloat16 or float16.
// Returns [rows, outputs].
torch::Tensor rounded_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                             torch::Dtype type);

namespace reference {
torch::Tensor rounded_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                             torch::Dtype type);
}  // namespace reference

}  // namespace calque

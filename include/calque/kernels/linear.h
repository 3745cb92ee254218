// Matrix products of training, in float32 or with operands rounded to a lower precision. On the CPU they are
// divided into blocks that threads take as they become free. The blocks depend on the shape alone, so the
// result has the same bits for any number of threads.
#pragma once

#include <torch/types.h>

namespace calque {

// a: [rows, inner]; b: [inner, columns], of the same type; either may be transposed. Without gradients.
// Returns [rows, columns] in float32.
torch::Tensor matrix_product(const torch::Tensor& a, const torch::Tensor& b);
// out: [rows, columns], float32, overwritten, or added to.
void matrix_product_into(const torch::Tensor& out, const torch::Tensor& a, const torch::Tensor& b,
                         bool add = false);

// x in another type, for products; x itself if it has that type already. Without gradients.
torch::Tensor rounded(const torch::Tensor& x, torch::Dtype type);

// y = x · weightᵀ + bias. x: [rows, inputs]; weight: [outputs, inputs]; bias: [outputs] or undefined. `type`
// may be bfloat16 or float16: then the operands of the product are rounded to it, forward and backward, while
// weight, gradients and output stay float32. Returns [rows, outputs].
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias = {},
                     torch::Dtype type = torch::kFloat32);

// y + scale · (x · downᵀ) · upᵀ. y: [rows, outputs], overwritten; down: [rank, inputs]; up: [outputs, rank].
torch::Tensor add_low_rank(const torch::Tensor& y, const torch::Tensor& x, const torch::Tensor& down,
                           const torch::Tensor& up, double scale);

namespace reference {
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias = {},
                     torch::Dtype type = torch::kFloat32);
torch::Tensor add_low_rank(const torch::Tensor& y, const torch::Tensor& x, const torch::Tensor& down,
                           const torch::Tensor& up, double scale);
}  // namespace reference

}  // namespace calque

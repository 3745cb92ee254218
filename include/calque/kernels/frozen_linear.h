// A matrix product with a weight that is kept in half precision and is not learnt: it is widened for the
// product, forward and backward, and never kept wide.
#pragma once

#include <torch/types.h>

namespace calque {

// x: [rows, inputs] float32; weight: [outputs, inputs] of any type, without gradient; bias: [outputs] or
// undefined. Gives [rows, outputs] float32.
torch::Tensor frozen_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

}  // namespace calque

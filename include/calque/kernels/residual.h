// The sum of a residual connection.
#pragma once

#include <torch/types.h>

namespace calque {

// x + branch, both [rows, size]. When gradients are off, overwrites `branch`, which is still in the cache,
// and returns it; do not use `branch` afterwards.
torch::Tensor add_residual(const torch::Tensor& x, const torch::Tensor& branch);

}  // namespace calque

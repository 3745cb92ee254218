// The sum of a residual connection.
#pragma once

#include <torch/types.h>

namespace calque {

// x + branch, both [rows, size]. Without gradients the sum is written over `branch`, which is still in the
// cache.
torch::Tensor add_residual(const torch::Tensor& x, const torch::Tensor& branch);

}  // namespace calque

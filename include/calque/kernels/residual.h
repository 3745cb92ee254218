// The sums of residual connections.
#pragma once

#include <torch/types.h>

namespace calque {

// x + branch, both [rows, size]. When gradients are off, overwrites `branch`, which is still in the cache,
// and returns it; do not use `branch` afterwards.
torch::Tensor add_residual(const torch::Tensor& x, const torch::Tensor& branch);

// x + factor · y. x, y: [rows, size]; factor: one element. Its gradient has the same bits for any number of
// threads.
torch::Tensor add_scaled(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& factor);

}  // namespace calque

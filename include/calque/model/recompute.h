// Recomputation (Chen et al., 2016): a part of a model that keeps nothing for its backward pass but what went
// into it, and runs a second time there. Memory for time.
#pragma once

#include <torch/types.h>

#include <functional>

namespace calque {

using ModelPart = std::function<torch::Tensor(const torch::Tensor& x)>;

// part(x), with the same gradients to the last bit, dropout included. Whatever `part` refers to must live
// until the backward pass.
torch::Tensor recomputed(const ModelPart& part, const torch::Tensor& x);

}  // namespace calque

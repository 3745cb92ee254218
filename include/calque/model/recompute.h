// Gradient checkpointing (Chen et al., 2016): a part of a model that stores nothing for its backward pass but
// its input, and is computed again there. It trades time for memory.
#pragma once

#include <torch/types.h>

#include <functional>

namespace calque {

using ModelPart = std::function<torch::Tensor(const torch::Tensor& x)>;

// part(x), with bitwise the same gradients, dropout included. Whatever `part` refers to must live until the
// backward pass.
torch::Tensor recomputed(const ModelPart& part, const torch::Tensor& x);

}  // namespace calque

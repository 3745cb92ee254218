// Memory for the activations of passes without gradients. Each thread reuses the blocks it freed, most recent
// first, because they are still in the cache. malloc would return a cold block, or new pages.
#pragma once

#include <ATen/EmptyTensor.h>
#include <torch/types.h>

namespace calque {

// A float32 tensor with undefined content. Bypasses the dispatcher, whose overhead equals a small kernel.
torch::Tensor empty_activation(at::IntArrayRef sizes);

}  // namespace calque

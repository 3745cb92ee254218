// Memory for the activations of passes without gradients. A thread uses the blocks that it freed again, the
// last one first: it is still in the cache. malloc would return a cold one, or new pages.
#pragma once

#include <ATen/EmptyTensor.h>
#include <torch/types.h>

namespace calque {

// A float32 tensor with undefined content. Goes past the dispatcher, which costs as much as a small kernel.
torch::Tensor empty_activation(at::IntArrayRef sizes);

}  // namespace calque

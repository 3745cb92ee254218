// Activations of the feed-forward layer: gated ones (Shazeer, 2020), whose gate and value are side by side in
// one tensor, and GELU in its tanh approximation.
#pragma once

#include <torch/types.h>

namespace calque {

enum class Gate { silu, gelu };

// x: [rows, 2 · size], the gates before the values. Returns [rows, size]: act(gate) * value.
torch::Tensor gated_activation(const torch::Tensor& x, Gate gate);

torch::Tensor gelu_activation(const torch::Tensor& x);

namespace reference {
torch::Tensor gated_activation(const torch::Tensor& x, Gate gate);
}  // namespace reference

}  // namespace calque

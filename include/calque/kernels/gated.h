// Gated activations (Shazeer, 2020): a gate and a value in one tensor, the gate bent and multiplied on.
#pragma once

#include <torch/types.h>

namespace calque {

enum class Gate { silu, gelu };  // gelu: the tanh form

// x: [rows, 2 · width], the gates before the values. Gives [rows, width]: bend(gate) · value.
torch::Tensor gated(const torch::Tensor& x, Gate gate);

namespace reference {
torch::Tensor gated(const torch::Tensor& x, Gate gate);
}  // namespace reference

}  // namespace calque

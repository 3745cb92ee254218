// Rotary positions (Su et al., 2021), half-split as Llama's checkpoints have them: dimension i turns with i +
// width/2.
#pragma once

#include <torch/types.h>

namespace calque {

// The angles' cosines and sines for every position.
struct RotaryTable {
  torch::Tensor cosines;  // [positions, head_width / 2] float32
  torch::Tensor sines;    // [positions, head_width / 2] float32
};

RotaryTable make_rotary_table(int64_t positions, int64_t head_width, double base,
                              const torch::Device& device = torch::kCPU);

// x: [rows, heads, head_width]; positions: [rows] int64. Turns each row by its position's angles.
torch::Tensor rotate(const torch::Tensor& x, const torch::Tensor& positions, const RotaryTable& table);

}  // namespace calque

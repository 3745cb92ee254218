// Rotary position embedding, RoPE (Su et al., 2021), in the half-split form of Llama's checkpoints: dimension
// i rotates with dimension i + head_size / 2.
#pragma once

#include <torch/types.h>

namespace calque {

struct RopeTable {
  torch::Tensor cosines;  // [positions, head_size / 2] float32
  torch::Tensor sines;    // [positions, head_size / 2] float32
};

RopeTable make_rope_table(int64_t positions, int64_t head_size, double theta,
                          const torch::Device& device = torch::kCPU);

// x: [rows, heads, head_size]; positions: [rows] int64. Rotates each row by the angles of its position.
torch::Tensor rotate(const torch::Tensor& x, const torch::Tensor& positions, const RopeTable& table);

}  // namespace calque

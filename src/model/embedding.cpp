#include "calque/model/embedding.h"

#include <torch/types.h>

#include <cmath>

namespace calque {
namespace {

// Vaswani et al. (2017): sines in the first half, cosines in the second.
torch::Tensor sinusoidal_table(int64_t positions, int64_t width) {
  const auto frequencies = torch::exp(torch::arange(0, width, 2, torch::kFloat32) *
                                      (-std::log(10000.0) / static_cast<double>(width)));
  const auto angles =
      torch::outer(torch::arange(positions, torch::kFloat32), frequencies);  // [positions, width / 2]
  return torch::cat({angles.sin(), angles.cos()}, 1);
}

}  // namespace

Embedding::Embedding(const ModelConfig& config)
    : scale_(config.scaled_embedding ? std::sqrt(static_cast<double>(config.width)) : 1),
      dropout_(config.dropout) {
  weight = register_parameter("weight", torch::empty({config.vocabulary, config.width}));
  if (config.positions == PositionKind::learned) {
    positions = register_parameter("positions", torch::empty({config.max_positions, config.width}));
  } else if (config.positions == PositionKind::sinusoidal) {
    positions = register_buffer("positions", sinusoidal_table(config.max_positions, config.width));
  }
}

torch::Tensor Embedding::forward(const torch::Tensor& tokens, const Pass& pass) const {
  torch::Tensor x = torch::embedding(weight, tokens);                                   // [rows, width]
  if (scale_ != 1) x = x * scale_;                                                      // [rows, width]
  if (positions.defined()) x = x + torch::embedding(positions, pass.layout.positions);  // [rows, width]
  return pass.show("embedding", torch::dropout(x, dropout_, is_training()));
}

}  // namespace calque

#include "calque/model/embedding.h"

#include <torch/types.h>

#include <cmath>

namespace calque {
namespace {

// Vaswani et al. (2017), with the sines in the first half and the cosines in the second.
torch::Tensor sinusoidal_table(int64_t positions, int64_t size) {
  const auto frequencies = torch::exp(torch::arange(0, size, 2, torch::kFloat32) *
                                      (-std::log(10000.0) / static_cast<double>(size)));
  const auto angles =
      torch::outer(torch::arange(positions, torch::kFloat32), frequencies);  // [positions, size / 2]
  return torch::cat({angles.sin(), angles.cos()}, 1);
}

}  // namespace

Embedding::Embedding(const ModelConfig& config)
    : scale_(config.scale_embeddings ? std::sqrt(static_cast<double>(config.hidden_size)) : 1),
      dropout_(config.dropout) {
  weight = register_parameter("weight", torch::empty({config.vocabulary, config.hidden_size}));
  if (config.positions == PositionKind::learned) {
    positions = register_parameter("positions", torch::empty({config.context_length, config.hidden_size}));
  } else if (config.positions == PositionKind::sinusoidal) {
    positions = register_buffer("positions", sinusoidal_table(config.context_length, config.hidden_size));
  }
}

void Embedding::share(std::shared_ptr<const PackedMatrix> table) {
  shared_ = std::move(table);
  parameters_.erase("weight");
  weight = torch::Tensor();
}

torch::Tensor Embedding::forward(const torch::Tensor& tokens, const ForwardContext& context) const {
  torch::Tensor x =
      shared_ ? shared_->rows(tokens) : torch::embedding(weight, tokens);  // [rows, hidden_size]
  if (at::isReducedFloatingType(x.scalar_type())) x = x.to(torch::kFloat32);
  if (scale_ != 1) x = x * scale_;  // [rows, hidden_size]
  if (positions.defined())
    x = x + torch::embedding(positions, context.layout.positions);  // [rows, hidden_size]
  return context.show("embedding", apply_dropout(x, dropout_, is_training()));
}

}  // namespace calque

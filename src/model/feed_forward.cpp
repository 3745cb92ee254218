#include "calque/model/feed_forward.h"

#include <torch/types.h>

#include "calque/kernels/activation.h"

namespace calque {

FeedForward::FeedForward(const ModelConfig& config)
    : activation_(config.activation), dropout_(config.dropout) {
  const int64_t up_size = config.is_gated() ? 2 * config.mlp_size : config.mlp_size;
  up = register_module("up", std::make_shared<Linear>(config.hidden_size, up_size, config.bias));
  down = register_module("down", std::make_shared<Linear>(config.mlp_size, config.hidden_size, config.bias));
}

torch::Tensor FeedForward::activate(const torch::Tensor& x) const {
  switch (activation_) {
    case Activation::swiglu:
      return gated_activation(x, Gate::silu);
    case Activation::geglu:
      return gated_activation(x, Gate::gelu);
    case Activation::gelu:
      return gelu_activation(x);
    case Activation::relu:
      return torch::relu(x);
  }
  return x;
}

torch::Tensor FeedForward::forward(const torch::Tensor& x, const ForwardContext& context) const {
  const auto inner = context.show("inner", activate(up->forward(x)));  // [rows, mlp_size]
  const auto output = context.show("output", down->forward(inner));    // [rows, hidden_size]
  return apply_dropout(output, dropout_, is_training());               // [rows, hidden_size]
}

}  // namespace calque

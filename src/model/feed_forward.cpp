#include "calque/model/feed_forward.h"

#include <torch/types.h>

#include "calque/kernels/gated.h"

namespace calque {

FeedForward::FeedForward(const ModelConfig& config) : kind_(config.feed_forward), dropout_(config.dropout) {
  const int64_t inner = config.feed_forward_width;
  up = register_module(
      "up", std::make_shared<Linear>(config.width, config.is_gated() ? 2 * inner : inner, config.bias));
  down = register_module("down", std::make_shared<Linear>(inner, config.width, config.bias));
}

torch::Tensor FeedForward::bend(const torch::Tensor& x) const {
  switch (kind_) {
    case FeedForwardKind::swiglu:
      return gated(x, Gate::silu);
    case FeedForwardKind::geglu:
      return gated(x, Gate::gelu);
    case FeedForwardKind::gelu:
      return torch::gelu(x, "tanh");
    case FeedForwardKind::relu:
      return torch::relu(x);
  }
  return x;
}

torch::Tensor FeedForward::forward(const torch::Tensor& x, const Pass& pass) const {
  const auto inner = pass.show("inner", bend(up->forward(x)));  // [rows, feed_forward_width]
  return torch::dropout(pass.show("output", down->forward(inner)), dropout_, is_training());  // [rows, width]
}

}  // namespace calque

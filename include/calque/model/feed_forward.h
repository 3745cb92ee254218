// FeedForward: the MLP of a block, gated (gate and value in one matrix) or plain.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "calque/model/forward_context.h"
#include "calque/model/linear.h"
#include "calque/model/model_config.h"

namespace calque {

class FeedForward : public torch::nn::Module {
 public:
  explicit FeedForward(const ModelConfig& config);
  torch::Tensor forward(const torch::Tensor& x,
                        const ForwardContext& context) const;  // [rows, hidden_size] → [rows, hidden_size]

  std::shared_ptr<Linear> up;    // mlp_size outputs; gated: gates, then values, 2 · mlp_size outputs
  std::shared_ptr<Linear> down;  // hidden_size outputs

 private:
  torch::Tensor activate(const torch::Tensor& x) const;
  Activation activation_;
  double dropout_;
};

}  // namespace calque

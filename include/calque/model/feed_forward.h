// FeedForward: widens each row, bends it, narrows it again; gated (two matrices up) or plain (one).
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "calque/model/linear.h"
#include "calque/model/model_config.h"
#include "calque/model/pass.h"

namespace calque {

class FeedForward : public torch::nn::Module {
 public:
  explicit FeedForward(const ModelConfig& config);
  torch::Tensor forward(const torch::Tensor& x, const Pass& pass) const;  // [rows, width] → [rows, width]

  std::shared_ptr<Linear> up;    // gated: gates and values in one, 2 · feed_forward_width outputs
  std::shared_ptr<Linear> down;  // width outputs

 private:
  torch::Tensor bend(const torch::Tensor& x) const;
  FeedForwardKind kind_;
  double dropout_;
};

}  // namespace calque

// Block: attention, then feed-forward, each behind a norm and added to what came in.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "calque/model/attention.h"
#include "calque/model/feed_forward.h"
#include "calque/model/norm.h"

namespace calque {

class Block : public torch::nn::Module {
 public:
  Block(const ModelConfig& config, int64_t layer);

  // x: [rows, width]. Gives the rows that the layout asks for, [queries, width]: of the others only keys and
  // values are computed.
  torch::Tensor forward(const torch::Tensor& x, const Pass& pass, const RotaryTable* rotary) const;

  struct NamedLinear {
    const char* name;
    Linear* linear;
  };
  std::vector<NamedLinear> matrices() const;  // qkv, output, up, down

  std::shared_ptr<Norm> attention_norm;
  std::shared_ptr<Attention> attention;
  std::shared_ptr<Norm> feed_forward_norm;
  std::shared_ptr<FeedForward> feed_forward;
  std::shared_ptr<Norm> attention_outer_norm, feed_forward_outer_norm;  // null without outer norms
};

}  // namespace calque

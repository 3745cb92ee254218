// Block: attention, then the feed-forward, each on a normalised input and added to the residual stream.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "calque/model/attention.h"
#include "calque/model/feed_forward.h"
#include "calque/model/norm.h"

namespace calque {

class Block : public torch::nn::Module {
 public:
  Block(const ModelConfig& config, int64_t layer);

  // x: [rows, hidden_size]. Returns the queries' rows, [queries, hidden_size]: of all other rows only keys
  // and values are computed. rope: null for models without RoPE.
  torch::Tensor forward(const torch::Tensor& x, const ForwardContext& context, const RopeTable* rope) const;

  struct Matrix {
    const char* name;  // qkv, output, up, down
    const char* path;  // of the module inside the block: attention.qkv
    Linear* linear;
    std::vector<int64_t> part_rows;  // the rows of each matrix that is fused into it
  };
  std::vector<Matrix> matrices() const;

  std::shared_ptr<Norm> attention_norm;
  std::shared_ptr<Attention> attention;
  std::shared_ptr<Norm> feed_forward_norm;
  std::shared_ptr<FeedForward> feed_forward;
  std::shared_ptr<Norm> attention_post_norm, feed_forward_post_norm;  // null without post-norm
};

}  // namespace calque

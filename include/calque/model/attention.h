// Attention: multi-head attention of a block. Queries, keys and values come from one matrix; heads may share
// keys and values in groups (GQA) and may be normalised (QK-norm).
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "calque/kernels/attention.h"
#include "calque/model/forward_context.h"
#include "calque/model/linear.h"
#include "calque/model/model_config.h"
#include "calque/model/norm.h"

namespace calque {

class Attention : public torch::nn::Module {
 public:
  Attention(const ModelConfig& config, int64_t layer);

  // x: [rows, hidden_size]. Returns [queries, hidden_size]. rope: null for models without RoPE.
  torch::Tensor forward(const torch::Tensor& x, const ForwardContext& context, const RopeTable* rope) const;

  std::shared_ptr<Linear> qkv;                 // (heads + 2 · kv_heads) · head_size outputs: q, k, v
  std::shared_ptr<Linear> output;              // hidden_size outputs
  std::shared_ptr<Norm> query_norm, key_norm;  // of head_size, shared by all heads; null without QK-norm
  AttentionShape shape;

 private:
  torch::Tensor attend(const torch::Tensor& x, const ForwardContext& context, const RopeTable* rope) const;
  torch::Tensor normalise_queries(const torch::Tensor& q) const;
  torch::Tensor normalise_keys(const torch::Tensor& kv) const;
  double dropout_;
};

}  // namespace calque

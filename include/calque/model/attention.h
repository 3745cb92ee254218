// Attention: multi-head attention of a block. Queries, keys and values come from one matrix; heads may share
// keys and values in groups, and may be normed.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "calque/kernels/attention.h"
#include "calque/model/linear.h"
#include "calque/model/model_config.h"
#include "calque/model/norm.h"
#include "calque/model/pass.h"

namespace calque {

class Attention : public torch::nn::Module {
 public:
  Attention(const ModelConfig& config, int64_t layer);

  // x: [rows, width]. Gives [queries, width] for the rows that the layout asks for.
  torch::Tensor forward(const torch::Tensor& x, const Pass& pass, const RotaryTable* rotary) const;

  std::shared_ptr<Linear> qkv;  // [heads + 2 · key_value_heads] · head_width outputs: queries, keys, values
  std::shared_ptr<Linear> output;              // width outputs
  std::shared_ptr<Norm> query_norm, key_norm;  // of a head's numbers, one for all heads; null without
  AttentionShape shape;

 private:
  torch::Tensor normed_queries(const torch::Tensor& q) const;
  torch::Tensor normed_keys(const torch::Tensor& kv) const;
  torch::Tensor attend(const torch::Tensor& x, const Pass& pass, const RotaryTable* rotary) const;
  double dropout_;
};

}  // namespace calque

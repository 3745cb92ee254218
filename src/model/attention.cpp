#include "calque/model/attention.h"

#include <torch/types.h>

#include <cmath>

namespace calque {

Attention::Attention(const ModelConfig& config) : dropout_(config.dropout) {
  shape = {config.heads, config.key_value_head_count(), config.width_of_head(),
           1.0 / std::sqrt(static_cast<double>(config.width_of_head()))};
  qkv = register_module("qkv", std::make_shared<Linear>(
                                   config.width, shape.query_width() + shape.key_value_width(), config.bias));
  output =
      register_module("output", std::make_shared<Linear>(shape.query_width(), config.width, config.bias));
}

torch::Tensor Attention::attend_cached(const torch::Tensor& x, const Pass& pass,
                                       const RotaryTable* rotary) const {
  const int64_t query_width = shape.query_width(), all = query_width + shape.key_value_width();
  const torch::Tensor& cache = pass.cache->layers[static_cast<size_t>(pass.layer)];
  if (pass.layout.asks_for_all()) {
    const auto both = qkv->forward(x);  // [rows, q | k | v]
    return cached_attention(both.slice(1, 0, query_width), both.slice(1, query_width), cache, pass.layout,
                            pass.cache->rows, shape, rotary);
  }
  const auto asked = x.index_select(0, pass.layout.query_rows);  // [queries, width]
  return cached_attention(qkv->forward_part(asked, 0, query_width), qkv->forward_part(x, query_width, all),
                          cache, pass.layout, pass.cache->rows, shape, rotary);
}

torch::Tensor Attention::attend(const torch::Tensor& x, const Pass& pass, const RotaryTable* rotary) const {
  if (pass.cache != nullptr) return attend_cached(x, pass, rotary);
  if (pass.layout.asks_for_all() && pass.tap == nullptr)
    return attention(qkv->forward(x), pass.layout, shape, rotary);
  const int64_t query_width = shape.query_width();
  const auto asked =
      pass.layout.asks_for_all() ? x : x.index_select(0, pass.layout.query_rows);  // [queries, width]
  const auto q = pass.show("q", qkv->forward_part(asked, 0, query_width));  // [queries, heads · head_width]
  const auto kv = pass.show(
      "kv", qkv->forward_part(x, query_width, query_width + shape.key_value_width()));  // [rows, 2 · …]
  for (int64_t pair = 0; pass.tap != nullptr && pair < pass.layout.pairs(); ++pair) {
    pass.show(("weights." + std::to_string(pair)).c_str(),
              attention_weights(q, kv, pass.layout, shape, rotary, pair));
  }
  return pass.show("heads", attention(q, kv, pass.layout, shape, rotary));  // [queries, heads · head_width]
}

torch::Tensor Attention::forward(const torch::Tensor& x, const Pass& pass, const RotaryTable* rotary) const {
  const auto heads = attend(x, pass, rotary);  // [queries, heads · head_width]
  return torch::dropout(pass.show("output", output->forward(heads)), dropout_,
                        is_training());  // [queries, width]
}

}  // namespace calque

#include "calque/model/attention.h"

#include <torch/types.h>

#include <cmath>

namespace calque {

Attention::Attention(const ModelConfig& config, int64_t layer) : dropout_(config.dropout) {
  shape = {config.heads, config.key_value_head_count(), config.width_of_head(),
           1.0 / std::sqrt(static_cast<double>(config.width_of_head())),
           config.has_window(layer) ? config.window : 0};
  qkv = register_module("qkv",
                        std::make_shared<Linear>(config.width, shape.query_width() + shape.key_value_width(),
                                                 config.bias || config.qkv_bias));
  output =
      register_module("output", std::make_shared<Linear>(shape.query_width(), config.width, config.bias));
  if (config.head_norms) {
    query_norm = register_module("query_norm", std::make_shared<Norm>(config, shape.head_width));
    key_norm = register_module("key_norm", std::make_shared<Norm>(config, shape.head_width));
  }
}

// q: [rows, heads · head_width], each head normed where the model does so.
torch::Tensor Attention::normed_queries(const torch::Tensor& q) const {
  return query_norm ? query_norm->forward(q.reshape({-1, shape.head_width})).view(q.sizes()) : q;
}

// kv: [rows, k | v]; the keys' heads likewise.
torch::Tensor Attention::normed_keys(const torch::Tensor& kv) const {
  if (!key_norm) return kv;
  const auto parts = kv.chunk(2, 1);
  const auto keys = key_norm->forward(parts[0].reshape({-1, shape.head_width})).view(parts[0].sizes());
  return torch::cat({keys, parts[1]}, 1);
}

torch::Tensor Attention::attend(const torch::Tensor& x, const Pass& pass, const RotaryTable* rotary) const {
  const bool all = pass.layout.asks_for_all();
  if (all && pass.tap == nullptr && !query_norm) {
    const auto both = qkv->forward(x);  // [rows, q | k | v]
    if (pass.cache == nullptr) return attention(both, pass.layout, shape, rotary);
    return cached_attention(both.slice(1, 0, shape.query_width()), both.slice(1, shape.query_width()),
                            pass.cache_of_layer(), pass.layout, pass.cache->rows, shape, rotary);
  }
  const int64_t q_width = shape.query_width(), qkv_width = q_width + shape.key_value_width();
  const auto parts =
      all ? qkv->forward(x).split_with_sizes({q_width, shape.key_value_width()}, 1)
          : std::vector{qkv->forward_part(x.index_select(0, pass.layout.query_rows), 0, q_width),
                        qkv->forward_part(x, q_width, qkv_width)};
  const auto q = pass.show("q", normed_queries(parts[0]));  // [queries, heads · head_width]
  const auto kv = pass.show("kv", normed_keys(parts[1]));   // [rows, k | v]
  if (pass.cache != nullptr)
    return cached_attention(q, kv, pass.cache_of_layer(), pass.layout, pass.cache->rows, shape, rotary);
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

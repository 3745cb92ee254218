#include "calque/model/attention.h"

#include <torch/types.h>

#include <cmath>

namespace calque {

Attention::Attention(const ModelConfig& config, int64_t layer) : dropout_(config.dropout) {
  shape.heads = config.heads;
  shape.kv_heads = config.kv_head_count();
  shape.head_size = config.head_size_or_default();
  shape.scale = 1.0 / std::sqrt(static_cast<double>(shape.head_size));
  shape.sliding_window = config.slides(layer) ? config.sliding_window : 0;
  qkv = register_module("qkv",
                        std::make_shared<Linear>(config.hidden_size, shape.query_size() + shape.kv_size(),
                                                 config.bias || config.qkv_bias));
  output = register_module("output",
                           std::make_shared<Linear>(shape.query_size(), config.hidden_size, config.bias));
  if (config.qk_norm) {
    query_norm = register_module("query_norm", std::make_shared<Norm>(config, shape.head_size));
    key_norm = register_module("key_norm", std::make_shared<Norm>(config, shape.head_size));
  }
}

// q: [rows, heads · head_size]
torch::Tensor Attention::normalise_queries(const torch::Tensor& q) const {
  return query_norm ? query_norm->forward(q.reshape({-1, shape.head_size})).view(q.sizes()) : q;
}

// kv: [rows, k | v]
torch::Tensor Attention::normalise_keys(const torch::Tensor& kv) const {
  if (!key_norm) return kv;
  const auto parts = kv.chunk(2, 1);
  const auto keys = key_norm->forward(parts[0].reshape({-1, shape.head_size})).view(parts[0].sizes());
  return torch::cat({keys, parts[1]}, 1);
}

torch::Tensor Attention::attend(const torch::Tensor& x, const ForwardContext& context,
                                const RopeTable* rope) const {
  const Layout& layout = context.layout;
  const bool all = layout.queries_all_rows();
  if (all && context.hook == nullptr && !query_norm) {
    const auto fused = qkv->forward(x);  // [rows, q | k | v]
    return context.cache == nullptr ? attention(fused, layout, shape, rope, context.padded)
                                    : cached_attention(fused, context.layer_cache(), layout,
                                                       context.cache->index, shape, rope, context.padded);
  }
  const int64_t q_size = shape.query_size(), qkv_size = q_size + shape.kv_size();
  std::vector<torch::Tensor> parts;       // [queries, q] and [rows, k | v]
  if (all || context.cache != nullptr) {  // mutate: speed only; in two products the result is the same
    parts = qkv->forward(x).split_with_sizes({q_size, shape.kv_size()}, 1);
    if (!all) parts[0] = parts[0].index_select(0, layout.query_rows);
  } else {
    parts = {qkv->forward_part(x.index_select(0, layout.query_rows), 0, q_size),
             qkv->forward_part(x, q_size, qkv_size)};
  }
  const auto q = context.show("q", normalise_queries(parts[0]));  // [queries, heads · head_size]
  const auto kv = context.show("kv", normalise_keys(parts[1]));   // [rows, k | v]
  if (context.cache != nullptr)
    return cached_attention(q, kv, context.layer_cache(), layout, context.cache->index, shape, rope,
                            context.padded);
  for (int64_t pair = 0; context.hook != nullptr && pair < layout.pairs(); ++pair) {
    context.show(("weights." + std::to_string(pair)).c_str(),
                 attention_weights(q, kv, layout, shape, rope, pair));
  }
  return attention(q, kv, layout, shape, rope, context.padded);  // [queries, heads · head_size]
}

torch::Tensor Attention::forward(const torch::Tensor& x, const ForwardContext& context,
                                 const RopeTable* rope) const {
  const auto heads = context.show("heads", attend(x, context, rope));  // [queries, heads · head_size]
  const auto mixed = context.show("output", output->forward(heads));   // [queries, hidden_size]
  return apply_dropout(mixed, dropout_, is_training());                // [queries, hidden_size]
}

}  // namespace calque

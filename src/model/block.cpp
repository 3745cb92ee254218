#include "calque/model/block.h"

#include <torch/types.h>

namespace calque {

Block::Block(const ModelConfig& config, int64_t layer) {
  const auto norm = [&](const char* name) {
    return register_module(name, std::make_shared<Norm>(config, config.width));
  };
  attention_norm = norm("attention_norm");
  attention = register_module("attention", std::make_shared<Attention>(config, layer));
  feed_forward_norm = norm("feed_forward_norm");
  feed_forward = register_module("feed_forward", std::make_shared<FeedForward>(config));
  if (config.outer_norms) {
    attention_outer_norm = norm("attention_outer_norm");
    feed_forward_outer_norm = norm("feed_forward_outer_norm");
  }
}

std::vector<Block::NamedLinear> Block::matrices() const {
  return {{"qkv", attention->qkv.get()},
          {"output", attention->output.get()},
          {"up", feed_forward->up.get()},
          {"down", feed_forward->down.get()}};
}

torch::Tensor Block::forward(const torch::Tensor& x, const Pass& pass, const RotaryTable* rotary) const {
  const auto normed = [](const std::shared_ptr<Norm>& norm, const torch::Tensor& y) {
    return norm ? norm->forward(y) : y;
  };
  const auto asked =
      pass.layout.asks_for_all() ? x : x.index_select(0, pass.layout.query_rows);  // [queries, width]
  const auto attended =
      attention->forward(attention_norm->forward(x), pass.inside("attention"), rotary);  // [queries, width]
  const auto h = asked + normed(attention_outer_norm, attended);                         // [queries, width]
  const auto fed = feed_forward->forward(feed_forward_norm->forward(h), pass.inside("feed_forward"));
  return pass.show("output", h + normed(feed_forward_outer_norm, fed));  // [queries, width]
}

}  // namespace calque

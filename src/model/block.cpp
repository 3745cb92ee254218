#include "calque/model/block.h"

#include <torch/types.h>

namespace calque {

Block::Block(const ModelConfig& config) {
  attention_norm = register_module("attention_norm", std::make_shared<Norm>(config));
  attention = register_module("attention", std::make_shared<Attention>(config));
  feed_forward_norm = register_module("feed_forward_norm", std::make_shared<Norm>(config));
  feed_forward = register_module("feed_forward", std::make_shared<FeedForward>(config));
}

torch::Tensor Block::forward(const torch::Tensor& x, const Pass& pass, const RotaryTable* rotary) const {
  const auto asked =
      pass.layout.asks_for_all() ? x : x.index_select(0, pass.layout.query_rows);  // [queries, width]
  const auto h = asked + attention->forward(attention_norm->forward(x), pass.inside("attention"),
                                            rotary);  // [queries, width]
  return pass.show("output", h + feed_forward->forward(feed_forward_norm->forward(h),
                                                       pass.inside("feed_forward")));  // [queries, width]
}

}  // namespace calque

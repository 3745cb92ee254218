#include "calque/model/block.h"

#include <torch/types.h>

#include "calque/kernels/residual.h"

namespace calque {
namespace {

torch::Tensor normalise(const std::shared_ptr<Norm>& norm, const torch::Tensor& x) {
  return norm ? norm->forward(x) : x;
}

// A hook may keep the branch, so it is not overwritten then.
torch::Tensor add(const torch::Tensor& x, const torch::Tensor& branch, const ForwardContext& context) {
  return context.hook != nullptr ? x + branch : add_residual(x, branch);
}

}  // namespace

Block::Block(const ModelConfig& config, int64_t layer) {
  const auto norm = [&](const char* name) {
    return register_module(name, std::make_shared<Norm>(config, config.hidden_size));
  };
  attention_norm = norm("attention_norm");
  attention = register_module("attention", std::make_shared<Attention>(config, layer));
  feed_forward_norm = norm("feed_forward_norm");
  feed_forward = register_module("feed_forward", std::make_shared<FeedForward>(config));
  if (config.post_norm) {
    attention_post_norm = norm("attention_post_norm");
    feed_forward_post_norm = norm("feed_forward_post_norm");
  }
}

std::vector<Block::Matrix> Block::matrices() const {
  const AttentionShape& shape = attention->shape;
  const int64_t keys = shape.kv_size() / 2, inner = feed_forward->down->inputs();
  const auto parts_of_up = static_cast<size_t>(feed_forward->up->outputs() / inner);
  return {{"qkv", "attention.qkv", attention->qkv.get(), {shape.query_size(), keys, keys}},
          {"output", "attention.output", attention->output.get(), {attention->output->outputs()}},
          {"up", "feed_forward.up", feed_forward->up.get(), std::vector<int64_t>(parts_of_up, inner)},
          {"down", "feed_forward.down", feed_forward->down.get(), {feed_forward->down->outputs()}}};
}

torch::Tensor Block::forward(const torch::Tensor& x, const ForwardContext& context,
                             const RopeTable* rope) const {
  const Layout& layout = context.layout;
  const auto residual =
      layout.queries_all_rows() ? x : x.index_select(0, layout.query_rows);  // [queries, hidden_size]
  const auto attended = attention->forward(attention_norm->forward(x), context.inside("attention"),
                                           rope);                                   // [queries, hidden_size]
  const auto h = add(residual, normalise(attention_post_norm, attended), context);  // [queries, hidden_size]
  const auto fed = feed_forward->forward(feed_forward_norm->forward(h), context.inside("feed_forward"));
  return context.show("output", add(h, normalise(feed_forward_post_norm, fed), context));
}

}  // namespace calque

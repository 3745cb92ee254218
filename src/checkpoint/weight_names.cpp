#include "calque/checkpoint/weight_names.h"

#include <cmath>
#include <set>

#include "calque/base/error.h"
#include "calque/base/text.h"

namespace calque {
namespace {

using torch::Tensor;

class Views {
 public:
  void add(const std::string& name, const Tensor& tensor) {
    if (tensor.defined()) views_.emplace_back(name, tensor.detach());
  }
  void add_rows(const std::string& name, const Linear& linear, int64_t begin, int64_t end) {
    add(name + ".weight", linear.weight.detach().slice(0, begin, end));
    if (linear.bias.defined()) add(name + ".bias", linear.bias.detach().slice(0, begin, end));
  }
  void add_linear(const std::string& name, const Linear& linear) {
    add_rows(name, linear, 0, linear.weight.size(0));
  }
  // GPT-2 stores its matrices transposed.
  void add_transposed(const std::string& name, const Linear& linear) {
    add(name + ".weight", linear.weight.detach().t());
    add(name + ".bias", linear.bias);
  }
  void add_norm(const std::string& name, const Norm& norm) {
    add(name + ".weight", norm.weight);
    add(name + ".bias", norm.bias);
  }
  NamedTensors take() { return std::move(views_); }

 private:
  NamedTensors views_;
};

// Llama's names, with those that Qwen and Gemma add.
NamedTensors llama_views(const Decoder& decoder) {
  Views views;
  views.add("model.embed_tokens.weight", decoder.embedding->weight);
  for (size_t i = 0; i < decoder.blocks.size(); ++i) {
    const Block& block = *decoder.blocks[i];
    const AttentionShape& shape = block.attention->shape;
    const int64_t keys = shape.query_size(), values = keys + shape.kv_size() / 2,
                  end = keys + shape.kv_size();
    const int64_t inner = block.feed_forward->up->weight.size(0) / 2;
    const std::string layer = fmt::format("model.layers.{}.", i);
    views.add_norm(layer + "input_layernorm", *block.attention_norm);
    views.add_rows(layer + "self_attn.q_proj", *block.attention->qkv, 0, keys);
    views.add_rows(layer + "self_attn.k_proj", *block.attention->qkv, keys, values);
    views.add_rows(layer + "self_attn.v_proj", *block.attention->qkv, values, end);
    views.add_linear(layer + "self_attn.o_proj", *block.attention->output);
    if (block.attention->query_norm) {
      views.add_norm(layer + "self_attn.q_norm", *block.attention->query_norm);
      views.add_norm(layer + "self_attn.k_norm", *block.attention->key_norm);
    }
    if (block.attention_post_norm) {
      views.add_norm(layer + "post_attention_layernorm", *block.attention_post_norm);
      views.add_norm(layer + "pre_feedforward_layernorm", *block.feed_forward_norm);
      views.add_norm(layer + "post_feedforward_layernorm", *block.feed_forward_post_norm);
    } else {
      views.add_norm(layer + "post_attention_layernorm", *block.feed_forward_norm);
    }
    views.add_rows(layer + "mlp.gate_proj", *block.feed_forward->up, 0, inner);
    views.add_rows(layer + "mlp.up_proj", *block.feed_forward->up, inner, 2 * inner);
    views.add_linear(layer + "mlp.down_proj", *block.feed_forward->down);
  }
  views.add_norm("model.norm", *decoder.norm);
  views.add("lm_head.weight", decoder.output);
  views.add("embedding_shortcut", decoder.embedding_shortcut);
  return views.take();
}

NamedTensors gpt2_views(const Decoder& decoder) {
  Views views;
  views.add("transformer.wte.weight", decoder.embedding->weight);
  views.add("transformer.wpe.weight", decoder.embedding->positions);
  for (size_t i = 0; i < decoder.blocks.size(); ++i) {
    const Block& block = *decoder.blocks[i];
    const std::string layer = fmt::format("transformer.h.{}.", i);
    views.add_norm(layer + "ln_1", *block.attention_norm);
    views.add_transposed(layer + "attn.c_attn", *block.attention->qkv);
    views.add_transposed(layer + "attn.c_proj", *block.attention->output);
    views.add_norm(layer + "ln_2", *block.feed_forward_norm);
    views.add_transposed(layer + "mlp.c_fc", *block.feed_forward->up);
    views.add_transposed(layer + "mlp.c_proj", *block.feed_forward->down);
  }
  views.add_norm("transformer.ln_f", *decoder.norm);
  views.add("embedding_shortcut", decoder.embedding_shortcut);
  return views.take();
}

}  // namespace

NamedTensors weight_views(const Decoder& decoder) {
  const ArchitectureTraits* traits = find_architecture(decoder.config().architecture);
  if (traits != nullptr && traits->weight_names == WeightNames::llama) return llama_views(decoder);
  if (traits != nullptr && traits->weight_names == WeightNames::gpt2) return gpt2_views(decoder);
  NamedTensors views;
  for (const auto& parameter : decoder.named_parameters())
    views.emplace_back(parameter.key(), parameter.value().detach());
  return views;
}

void check_weight_count(const ModelConfig& config, int64_t weights, const std::string& name) {
  const double expected =
      static_cast<double>(config.layers) *
          (static_cast<double>(config.hidden_size) * static_cast<double>(config.head_size_or_default()) *
               static_cast<double>(2 * config.heads + 2 * config.kv_head_count()) +
           static_cast<double>(config.hidden_size) * static_cast<double>(config.mlp_size) *
               (config.is_gated() ? 3 : 2)) +
      static_cast<double>(config.vocabulary) * static_cast<double>(config.hidden_size) *
          (config.tied_embeddings ? 1 : 2) +
      (config.positions == PositionKind::learned
           ? static_cast<double>(config.context_length) * static_cast<double>(config.hidden_size)
           : 0.0);
  // Catches absurd sizes; a missing tensor is reported by its name later.
  if (expected > 2 * static_cast<double>(weights) + 1e6) {
    throw UserError(
        fmt::format("{}: its model has {:.0f} weights, but {} are stored", name, expected, weights));
  }
}

void load_weights(const Decoder& decoder, const Safetensors& file, const std::string& name) {
  const torch::NoGradGuard no_gradients;
  std::set<std::string> expected;
  for (const auto& [key, view] : weight_views(decoder)) {
    if (!file.entries().contains(key))
      throw UserError(fmt::format("{}: no tensor {} of config.json's model", name, key),
                      "does its config.json belong to it? `calque import` reads other names of tensors");
    const Tensor value = file.tensor(key);
    if (value.sizes() != view.sizes()) {
      throw UserError(fmt::format("{}: {} has shape [{}], config.json says [{}]", name, key,
                                  fmt::join(value.sizes(), ", "), fmt::join(view.sizes(), ", ")));
    }
    view.copy_(value);
    file.forget(key);  // so that loading never holds the weights twice
    if (!std::isfinite(view.sum().item<double>()) && !view.isfinite().all().item<bool>())
      throw UserError(fmt::format("{}: {} contains NaN or infinite values", name, key),
                      "the training diverged, or the file is damaged; use another checkpoint");
    expected.insert(key);
  }
  for (const auto& [key, entry] : file.entries()) {
    if (!expected.contains(key))
      throw UserError(fmt::format("{}: {} is not part of config.json's model", name, shorten(key, 80)),
                      "does its config.json belong to it? `calque import` reads other names of tensors");
  }
}

}  // namespace calque

#include "calque/model/model_config.h"

#include <cmath>

#include "calque/base/error.h"

namespace calque {
namespace {

constexpr int64_t max_layers = 1000;

// A named size sets these; keys beside `size` override them, since they are read after it.
void apply_size(ModelConfig& c, ModelSize size) {
  struct Size {
    int64_t layers, hidden_size, heads, mlp_size;
  };
  constexpr Size sizes[] = {{6, 256, 4, 768}, {2, 64, 2, 192}, {4, 128, 4, 384}, {6, 256, 4, 768}};
  const Size& chosen = sizes[static_cast<size_t>(size)];
  c.size = size;
  c.layers = chosen.layers;
  c.hidden_size = chosen.hidden_size;
  c.heads = chosen.heads;
  c.mlp_size = chosen.mlp_size;
}

// The options that a table row fixes, by key.
struct FixedOption {
  const char* key;
  Fixed fixed;
  bool value;
};
std::vector<FixedOption> fixed_options(const ArchitectureTraits& traits, const ModelConfig& c) {
  return {{"bias", traits.bias, c.bias},
          {"qkv_bias", traits.qkv_bias, c.qkv_bias},
          {"qk_norm", traits.qk_norm, c.qk_norm},
          {"post_norm", traits.post_norm, c.post_norm},
          {"scale_embeddings", traits.scale_embeddings, c.scale_embeddings},
          {"tied_embeddings", traits.tied_embeddings, c.tied_embeddings},
          {"sliding_window", traits.sliding_window, c.sliding_window > 0}};
}

void check_architecture(const ModelConfig& c) {
  const ArchitectureTraits* traits = find_architecture(c.architecture);
  if (traits == nullptr) return;
  const auto refuse = [&](const std::string& key, std::string_view value) {
    throw UserError(
        fmt::format("model.{}={} does not fit model.architecture={}", key, value, name_of(c.architecture)),
        "model.architecture=calque takes any combination of options");
  };
  if (c.norm != traits->norm) refuse("norm", name_of(c.norm));
  if (c.positions != traits->positions) refuse("positions", name_of(c.positions));
  if (c.activation != traits->activation) refuse("activation", name_of(c.activation));
  for (const FixedOption& option : fixed_options(*traits, c)) {
    if (option.fixed != Fixed::free && option.value != (option.fixed == Fixed::yes))
      refuse(option.key, option.value ? "true" : "false");
  }
  if (c.architecture == Architecture::gpt2 &&
      (c.kv_head_count() != c.heads || c.head_size_or_default() * c.heads != c.hidden_size))
    refuse("kv_heads or model.head_size", "…");
}

}  // namespace

void apply_architecture(ModelConfig& c, Architecture architecture) {
  c.architecture = architecture;
  const ArchitectureTraits* traits = find_architecture(architecture);
  if (traits == nullptr) return;
  c.norm = traits->norm;
  c.positions = traits->positions;
  c.activation = traits->activation;
  const auto set = [](Fixed fixed, bool& value) {
    if (fixed != Fixed::free) value = fixed == Fixed::yes;
  };
  set(traits->bias, c.bias);
  set(traits->qkv_bias, c.qkv_bias);
  set(traits->qk_norm, c.qk_norm);
  set(traits->post_norm, c.post_norm);
  set(traits->scale_embeddings, c.scale_embeddings);
  set(traits->tied_embeddings, c.tied_embeddings);
  if (traits->sliding_window == Fixed::yes) {
    if (c.sliding_window == 0) c.sliding_window = 512;
    // Gemma 3: five layers with a sliding window, then one with full attention.
    if (c.layer_types.empty()) {
      c.layer_types.assign(5, LayerType::sliding_attention);
      c.layer_types.push_back(LayerType::full_attention);
    }
  }
}

Fields fields(ModelConfig& c) {
  const auto names = [](const auto& list) {
    return std::vector<std::string>(std::begin(list), std::end(list));
  };
  return {
      choice_field(
          "architecture", names(EnumNames<Architecture>::names),
          [&c] { return static_cast<size_t>(c.architecture); },
          [&c](size_t i) { apply_architecture(c, static_cast<Architecture>(i)); },
          "the family, which fixes norm, positions, activation and biases; calque: any combination"),
      choice_field(
          "size", names(EnumNames<ModelSize>::names), [&c] { return static_cast<size_t>(c.size); },
          [&c](size_t i) { apply_size(c, static_cast<ModelSize>(i)); },
          "sets layers, hidden_size, heads and mlp_size together; these keys override it"),
      field("layers", c.layers, between(int64_t{1}, max_layers), "number of Transformer blocks"),
      field("hidden_size", c.hidden_size, between(2, 65536), "size of the residual stream (d_model)")
          .formerly("width"),
      field("heads", c.heads, between(1, 1024), "number of attention heads"),
      field("kv_heads", c.kv_heads, between(0, 1024),
            "number of key-value heads, shared by groups of heads (GQA); 0: as many as heads")
          .formerly("key_value_heads"),
      field("head_size", c.head_size, between(0, 4096), "size of a head; 0: hidden_size / heads")
          .formerly("head_width"),
      field("activation", c.activation, "activation of the MLP; swiglu and geglu are gated")
          .formerly("feed_forward"),
      field("mlp_size", c.mlp_size, between(1, 1'000'000), "inner size of the MLP")
          .formerly("feed_forward_width"),
      field("norm", c.norm, "normalisation; rms_plus_one is Gemma's RMSNorm"),
      field("norm_epsilon", c.norm_epsilon, above(0.0), "added to the variance, against division by zero"),
      field("positions", c.positions, "position encoding"),
      field("context_length", c.context_length, between(2, 1'000'000), "longest sequence, in tokens")
          .formerly("max_positions"),
      field("rope_theta", c.rope_theta, above(1.0), "base of the RoPE angles").formerly("rotary_base"),
      field("sliding_window", c.sliding_window, at_least(0),
            "tokens that a sliding_attention layer sees, the current one included; 0: no such layers")
          .formerly("window"),
      list_of_choices(
          "layer_types", c.layer_types,
          "full_attention or sliding_attention per layer, repeated over the layers; empty: all full"),
      field("rope_local_theta", c.rope_local_theta, above(1.0),
            "base of the RoPE angles in sliding_attention layers")
          .formerly("window_rotary_base"),
      field("qk_norm", c.qk_norm, "normalise the queries and keys of each head").formerly("head_norms"),
      field("post_norm", c.post_norm, "normalise the outputs of attention and MLP too")
          .formerly("outer_norms"),
      field("scale_embeddings", c.scale_embeddings, "multiply embeddings by √hidden_size")
          .formerly("scaled_embedding"),
      field("bias", c.bias, "biases in all linear layers"),
      field("qkv_bias", c.qkv_bias, "biases in the query, key and value projections, whatever `bias` says"),
      field("tied_embeddings", c.tied_embeddings, "use the embedding matrix as the output matrix too")
          .formerly("tied"),
      field("attention", c.attention,
            "prefix: the source attends to itself in both directions; causal: only backwards"),
      field("target_positions", c.target_positions,
            "continue: the target's positions follow the source's; restart: they begin at 0 again, so that "
            "words that translate each other have similar positions"),
      field("embedding_shortcut", c.embedding_shortcut,
            "add the token embeddings to the input of every block again, each time with a learned weight"),
      field("prompt", c.prompt,
            "text around {source} and {target}, such as \"French: {source} English: {target}\"; empty: <sep> "
            "between them, or a newline where the tokenizer has no <sep>"),
      field("dropout", c.dropout, from_below(0.0, 1.0),
            "dropout probability of the embeddings and of the outputs of attention and MLP"),
  };
}

void check_model(const ModelConfig& c) {
  if (c.layers > max_layers)
    throw UserError(fmt::format("{} layers; at most {} are supported", c.layers, max_layers));
  if (c.head_size == 0 && c.hidden_size % c.heads != 0) {
    throw UserError(
        fmt::format("model.hidden_size={} is not divisible by model.heads={}", c.hidden_size, c.heads),
        "or set model.head_size");
  }
  if (c.heads % c.kv_head_count() != 0) {
    throw UserError(
        fmt::format("model.heads={} is not a multiple of model.kv_heads={}", c.heads, c.kv_head_count()));
  }
  if (c.positions == PositionKind::rope && c.head_size_or_default() % 2 != 0) {
    throw UserError(
        fmt::format("model.positions=rope needs an even head size, not {}", c.head_size_or_default()));
  }
  const bool slides =
      std::count(c.layer_types.begin(), c.layer_types.end(), LayerType::sliding_attention) > 0;
  if (slides != (c.sliding_window > 0)) {
    throw UserError(
        slides ? "model.layer_types has sliding_attention layers, but model.sliding_window is 0"
               : fmt::format("model.sliding_window={} needs model.layer_types with sliding_attention",
                             c.sliding_window));
  }
  if (slides && c.positions != PositionKind::rope)
    throw UserError("model.sliding_window needs model.positions=rope");
  if (c.positions == PositionKind::sinusoidal && c.hidden_size % 2 != 0) {
    throw UserError(
        fmt::format("model.positions=sinusoidal needs an even model.hidden_size, not {}", c.hidden_size));
  }
  if (!(c.norm_epsilon > 0 && std::isfinite(c.norm_epsilon)))
    throw UserError(fmt::format("model.norm_epsilon={} is not a positive number", c.norm_epsilon));
  for (const auto& [key, theta] :
       {std::pair{"model.rope_theta", c.rope_theta}, {"model.rope_local_theta", c.rope_local_theta}}) {
    if (!(theta > 1 && std::isfinite(theta)))
      throw UserError(fmt::format("{}={} is not a number above 1", key, theta));
  }
  if (c.vocabulary < 1) throw UserError("the model's vocabulary is empty");
  check_architecture(c);
}

int64_t block_weights(const ModelConfig& c) {
  const int64_t attention = c.hidden_size * c.head_size_or_default() * (c.heads + 2 * c.kv_head_count()) +
                            c.heads * c.head_size_or_default() * c.hidden_size;
  const int64_t mlp = c.hidden_size * c.mlp_size * (c.is_gated() ? 3 : 2);
  return c.layers * (attention + mlp);
}

int64_t output_weights(const ModelConfig& c) { return c.vocabulary * c.hidden_size; }

}  // namespace calque

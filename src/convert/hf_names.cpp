#include "calque/convert/hf_names.h"

#include "calque/base/error.h"
#include "calque/base/text.h"

namespace calque {
namespace {

using nlohmann::json;
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
  // GPT-2 stores its matrices the other way round.
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

NamedTensors llama_views(const Decoder& decoder) {
  Views views;
  views.add("model.embed_tokens.weight", decoder.embedding->weight);
  for (size_t i = 0; i < decoder.blocks.size(); ++i) {
    const Block& block = *decoder.blocks[i];
    const AttentionShape& shape = block.attention->shape;
    const int64_t keys = shape.query_width(), values = keys + shape.key_value_width() / 2,
                  end = keys + shape.key_value_width();
    const int64_t inner = block.feed_forward->up->weight.size(0) / 2;
    const std::string layer = fmt::format("model.layers.{}.", i);
    views.add_norm(layer + "input_layernorm", *block.attention_norm);
    views.add_rows(layer + "self_attn.q_proj", *block.attention->qkv, 0, keys);
    views.add_rows(layer + "self_attn.k_proj", *block.attention->qkv, keys, values);
    views.add_rows(layer + "self_attn.v_proj", *block.attention->qkv, values, end);
    views.add_linear(layer + "self_attn.o_proj", *block.attention->output);
    views.add_norm(layer + "post_attention_layernorm", *block.feed_forward_norm);
    views.add_rows(layer + "mlp.gate_proj", *block.feed_forward->up, 0, inner);
    views.add_rows(layer + "mlp.up_proj", *block.feed_forward->up, inner, 2 * inner);
    views.add_linear(layer + "mlp.down_proj", *block.feed_forward->down);
  }
  views.add_norm("model.norm", *decoder.norm);
  views.add("lm_head.weight", decoder.output);
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
  return views.take();
}

template <class Enum>
Enum read_enum(const json& object, const char* key, const std::string& file) {
  const auto& names = EnumNames<Enum>::names;
  const std::string text = object.value(key, "");
  for (size_t i = 0; i < std::size(names); ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  throw UserError(fmt::format("{}: {}: \"{}\" is unknown", file, key, text));
}

int64_t read_count(const json& object, const char* key, const std::string& file) {
  if (!object.contains(key) || !object[key].is_number_integer() || object[key].get<int64_t>() < 1 ||
      object[key].get<int64_t>() > 100'000'000) {
    throw UserError(fmt::format("{}: {}: a whole number above 0 wanted", file, key));
  }
  return object[key].get<int64_t>();
}

}  // namespace

Architecture architecture_of(const ModelConfig& c) {
  if (c.norm == NormKind::rms && c.positions == PositionKind::rotary &&
      c.feed_forward == FeedForwardKind::swiglu)
    return Architecture::llama;
  if (c.norm == NormKind::layer && c.positions == PositionKind::learned &&
      c.feed_forward == FeedForwardKind::gelu && c.bias && c.tied && c.key_value_head_count() == c.heads &&
      c.width_of_head() * c.heads == c.width) {
    return Architecture::gpt2;
  }
  return Architecture::calque;
}

NamedTensors hf_views(const Decoder& decoder) {
  switch (architecture_of(decoder.config())) {
    case Architecture::llama:
      return llama_views(decoder);
    case Architecture::gpt2:
      return gpt2_views(decoder);
    case Architecture::calque:
      break;
  }
  NamedTensors views;
  for (const auto& parameter : decoder.named_parameters())
    views.emplace_back(parameter.key(), parameter.value().detach());
  return views;
}

json hf_config(const ModelConfig& c) {
  json config = {{"vocab_size", c.vocabulary}, {"tie_word_embeddings", c.tied},
                 {"torch_dtype", "float32"},   {"bos_token_id", 1},
                 {"eos_token_id", 2},          {"calque", {{"attention", name_of(c.attention)}}}};
  switch (architecture_of(c)) {
    case Architecture::llama:
      config.update({{"architectures", {"LlamaForCausalLM"}},
                     {"model_type", "llama"},
                     {"hidden_size", c.width},
                     {"intermediate_size", c.feed_forward_width},
                     {"num_hidden_layers", c.layers},
                     {"num_attention_heads", c.heads},
                     {"num_key_value_heads", c.key_value_head_count()},
                     {"head_dim", c.width_of_head()},
                     {"rms_norm_eps", c.norm_epsilon},
                     {"rope_theta", c.rotary_base},
                     {"max_position_embeddings", c.max_positions},
                     {"hidden_act", "silu"},
                     {"attention_bias", c.bias},
                     {"mlp_bias", c.bias}});
      break;
    case Architecture::gpt2:
      config.update({{"architectures", {"GPT2LMHeadModel"}},
                     {"model_type", "gpt2"},
                     {"n_embd", c.width},
                     {"n_inner", c.feed_forward_width},
                     {"n_layer", c.layers},
                     {"n_head", c.heads},
                     {"n_positions", c.max_positions},
                     {"layer_norm_epsilon", c.norm_epsilon},
                     {"activation_function", "gelu_new"},
                     {"resid_pdrop", 0.0},
                     {"embd_pdrop", 0.0},
                     {"attn_pdrop", 0.0}});
      break;
    case Architecture::calque:
      config.update({{"architectures", {"CalqueForCausalLM"}}, {"model_type", "calque"}});
      config["calque"].update({{"layers", c.layers},
                               {"width", c.width},
                               {"heads", c.heads},
                               {"key_value_heads", c.key_value_head_count()},
                               {"head_width", c.width_of_head()},
                               {"feed_forward", name_of(c.feed_forward)},
                               {"feed_forward_width", c.feed_forward_width},
                               {"norm", name_of(c.norm)},
                               {"norm_epsilon", c.norm_epsilon},
                               {"positions", name_of(c.positions)},
                               {"max_positions", c.max_positions},
                               {"rotary_base", c.rotary_base},
                               {"bias", c.bias}});
      break;
  }
  return config;
}

ModelConfig read_hf_config(const json& j, const std::string& file) {
  if (!j.is_object()) throw UserError(fmt::format("{}: an object wanted", file));
  const std::string type = j.value("model_type", "");
  ModelConfig c;
  c.vocabulary = read_count(j, "vocab_size", file);
  c.tied = j.value("tie_word_embeddings", type == "gpt2");
  c.attention = AttentionKind::causal;
  const json own = j.value("calque", json::object());
  if (own.contains("attention")) c.attention = read_enum<AttentionKind>(own, "attention", file);
  if (type == "llama") {
    // Newer files have rope_parameters, older ones rope_scaling and rope_theta.
    const json rope = j.contains("rope_parameters") && j["rope_parameters"].is_object() ? j["rope_parameters"]
                      : j.contains("rope_scaling") && j["rope_scaling"].is_object()     ? j["rope_scaling"]
                                                                                        : json::object();
    const std::string scaling = rope.value("rope_type", rope.value("type", "default"));
    if (scaling != "default") {
      throw UserError(fmt::format("{}: rope scaling ({}) is not supported", file, shorten(scaling, 20)),
                      "only models with plain rotary positions can be used");
    }
    c.width = read_count(j, "hidden_size", file);
    c.feed_forward_width = read_count(j, "intermediate_size", file);
    c.layers = read_count(j, "num_hidden_layers", file);
    c.heads = read_count(j, "num_attention_heads", file);
    c.key_value_heads =
        j.contains("num_key_value_heads") ? read_count(j, "num_key_value_heads", file) : c.heads;
    c.head_width = j.contains("head_dim") && j["head_dim"].is_number() ? read_count(j, "head_dim", file) : 0;
    c.norm_epsilon = j.value("rms_norm_eps", 1e-6);
    c.rotary_base = rope.value("rope_theta", j.value("rope_theta", 10000.0));
    c.max_positions = read_count(j, "max_position_embeddings", file);
    c.bias = j.value("attention_bias", false);
    if (j.value("mlp_bias", c.bias) != c.bias)
      throw UserError(fmt::format("{}: biases in attention or feed-forward alone are not supported", file));
    if (j.value("hidden_act", "silu") != "silu")
      throw UserError(
          fmt::format("{}: hidden_act {} is not supported", file, shorten(j.value("hidden_act", ""), 20)));
  } else if (type == "gpt2") {
    c.norm = NormKind::layer;
    c.positions = PositionKind::learned;
    c.feed_forward = FeedForwardKind::gelu;
    c.bias = true;
    c.width = read_count(j, "n_embd", file);
    c.feed_forward_width =
        j.contains("n_inner") && j["n_inner"].is_number() ? read_count(j, "n_inner", file) : 4 * c.width;
    c.layers = read_count(j, "n_layer", file);
    c.heads = read_count(j, "n_head", file);
    c.max_positions = read_count(j, "n_positions", file);
    c.norm_epsilon = j.value("layer_norm_epsilon", 1e-5);
  } else if (type == "calque") {
    c.layers = read_count(own, "layers", file);
    c.width = read_count(own, "width", file);
    c.heads = read_count(own, "heads", file);
    c.key_value_heads = read_count(own, "key_value_heads", file);
    c.head_width = read_count(own, "head_width", file);
    c.feed_forward = read_enum<FeedForwardKind>(own, "feed_forward", file);
    c.feed_forward_width = read_count(own, "feed_forward_width", file);
    c.norm = read_enum<NormKind>(own, "norm", file);
    c.norm_epsilon = own.value("norm_epsilon", 1e-5);
    c.positions = read_enum<PositionKind>(own, "positions", file);
    c.max_positions = read_count(own, "max_positions", file);
    c.rotary_base = own.value("rotary_base", 10000.0);
    c.bias = own.value("bias", false);
  } else {
    throw UserError(fmt::format("{}: model_type \"{}\" is not supported", file, shorten(type, 40)),
                    "llama, gpt2 and calque are");
  }
  check_model(c);
  return c;
}

void check_weight_count(const ModelConfig& config, int64_t weights, const std::string& name) {
  const double wanted =
      static_cast<double>(config.layers) *
          (static_cast<double>(config.width) * static_cast<double>(config.width_of_head()) *
               static_cast<double>(2 * config.heads + 2 * config.key_value_head_count()) +
           static_cast<double>(config.width) * static_cast<double>(config.feed_forward_width) *
               (config.is_gated() ? 3 : 2)) +
      static_cast<double>(config.vocabulary) * static_cast<double>(config.width) * (config.tied ? 1 : 2);
  // A tensor that is missing is told by its name; this is about sizes that are absurd.
  if (wanted > 2 * static_cast<double>(weights) + 1e6) {
    throw UserError(
        fmt::format("{}: its sizes need {:.0f} weights, its tensors hold {}", name, wanted, weights));
  }
}

void load_weights(const Decoder& decoder, const Safetensors& file, const std::string& name) {
  const torch::NoGradGuard no_gradients;
  std::set<std::string> wanted;
  for (const auto& [key, view] : hf_views(decoder)) {
    const Tensor value = file.tensor(key);
    if (value.sizes() != view.sizes()) {
      throw UserError(fmt::format("{}: {} is [{}], [{}] wanted", name, key, fmt::join(value.sizes(), ", "),
                                  fmt::join(view.sizes(), ", ")));
    }
    view.copy_(value);
    wanted.insert(key);
  }
  for (const auto& [key, entry] : file.entries()) {
    if (!wanted.contains(key))
      throw UserError(fmt::format("{}: {} is not part of this model", name, shorten(key, 80)));
  }
}

}  // namespace calque

#include "calque/convert/hf_names.h"

#include <algorithm>

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

// Llama's names, with what Qwen and Gemma have on top.
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
    if (block.attention->query_norm) {
      views.add_norm(layer + "self_attn.q_norm", *block.attention->query_norm);
      views.add_norm(layer + "self_attn.k_norm", *block.attention->key_norm);
    }
    if (block.attention_outer_norm) {
      views.add_norm(layer + "post_attention_layernorm", *block.attention_outer_norm);
      views.add_norm(layer + "pre_feedforward_layernorm", *block.feed_forward_norm);
      views.add_norm(layer + "post_feedforward_layernorm", *block.feed_forward_outer_norm);
    } else {
      views.add_norm(layer + "post_attention_layernorm", *block.feed_forward_norm);
    }
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
  const bool plain = !c.outer_norms && !c.scaled_embedding && c.window == 0;
  if (c.norm == NormKind::layer && c.positions == PositionKind::learned &&
      c.feed_forward == FeedForwardKind::gelu && c.bias && c.tied && plain && !c.head_norms &&
      c.key_value_head_count() == c.heads && c.width_of_head() * c.heads == c.width) {
    return Architecture::gpt2;
  }
  if (c.positions != PositionKind::rotary) return Architecture::calque;
  if (c.norm == NormKind::rms_plus_one && c.feed_forward == FeedForwardKind::geglu && c.outer_norms &&
      c.head_norms && c.scaled_embedding && c.window > 0 && c.tied && !c.bias && !c.qkv_bias)
    return Architecture::gemma3;
  if (c.norm != NormKind::rms || c.feed_forward != FeedForwardKind::swiglu || !plain)
    return Architecture::calque;
  if (c.head_norms) return c.bias || c.qkv_bias ? Architecture::calque : Architecture::qwen3;
  return c.qkv_bias && !c.bias ? Architecture::qwen2 : Architecture::llama;
}

NamedTensors hf_views(const Decoder& decoder) {
  switch (architecture_of(decoder.config())) {
    case Architecture::llama:
    case Architecture::qwen2:
    case Architecture::qwen3:
    case Architecture::gemma3:
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

json describe_model(const ModelConfig& given) {
  ModelConfig c = given;
  c.key_value_heads = c.key_value_head_count();
  c.head_width = c.width_of_head();
  json all = {{"vocabulary", c.vocabulary}};
  for (const Field& field : fields(c)) {
    if (field.name == "size" || field.name == "dropout")
      continue;  // how it was named and trained, not what it is
    const YAML::Node value = field.write({});
    const std::string text = value.IsNull() ? "" : value.as<std::string>();
    const json parsed = json::parse(text, nullptr, false);
    all[field.name] = parsed.is_number() || parsed.is_boolean() ? parsed : json(text);
  }
  return all;
}

json hf_config(const ModelConfig& c) {
  json config = {{"vocab_size", c.vocabulary},
                 {"tie_word_embeddings", c.tied},
                 {"torch_dtype", "float32"},
                 {"calque", {{"attention", name_of(c.attention)}, {"prompt", c.prompt}}}};
  const Architecture architecture = architecture_of(c);
  const auto rotary_model = [&](const char* type, const char* whole) {
    config.update({{"architectures", {whole}},
                   {"model_type", type},
                   {"hidden_size", c.width},
                   {"intermediate_size", c.feed_forward_width},
                   {"num_hidden_layers", c.layers},
                   {"num_attention_heads", c.heads},
                   {"num_key_value_heads", c.key_value_head_count()},
                   {"head_dim", c.width_of_head()},
                   {"rms_norm_eps", c.norm_epsilon},
                   {"rope_theta", c.rotary_base},
                   {"max_position_embeddings", c.max_positions}});
  };
  switch (architecture) {
    case Architecture::llama:
      rotary_model("llama", "LlamaForCausalLM");
      config.update({{"hidden_act", "silu"}, {"attention_bias", c.bias}, {"mlp_bias", c.bias}});
      break;
    case Architecture::qwen2:
      rotary_model("qwen2", "Qwen2ForCausalLM");
      config.update({{"hidden_act", "silu"}, {"use_sliding_window", false}});
      break;
    case Architecture::qwen3:
      rotary_model("qwen3", "Qwen3ForCausalLM");
      config.update({{"hidden_act", "silu"}, {"use_sliding_window", false}, {"attention_bias", false}});
      break;
    case Architecture::gemma3: {
      rotary_model("gemma3_text", "Gemma3ForCausalLM");
      json kinds = json::array();
      for (int64_t layer = 0; layer < c.layers; ++layer)
        kinds.push_back(c.has_window(layer) ? "sliding_attention" : "full_attention");
      config.update({{"hidden_activation", "gelu_pytorch_tanh"},
                     {"attention_bias", false},
                     {"query_pre_attn_scalar", c.width_of_head()},
                     {"sliding_window", c.window},
                     {"sliding_window_pattern", c.window_period},
                     {"layer_types", kinds},
                     {"rope_local_base_freq", c.window_rotary_base}});
      break;
    }
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
      config["calque"].update(describe_model(c));
      break;
  }
  return config;
}

namespace {

// Newer files have rope_parameters, older ones rope_scaling and rope_theta. `kind`: of layers, where these
// differ.
double read_rotary_base(const json& j, const char* old_key, const char* kind, double otherwise,
                        const std::string& file) {
  json rope = j.contains("rope_parameters") && j["rope_parameters"].is_object() ? j["rope_parameters"]
              : j.contains("rope_scaling") && j["rope_scaling"].is_object()     ? j["rope_scaling"]
                                                                                : json::object();
  if (rope.contains(kind) && rope[kind].is_object()) rope = json(rope[kind]);
  const std::string scaling = rope.value("rope_type", rope.value("type", "default"));
  if (scaling != "default") {
    throw UserError(fmt::format("{}: rope scaling ({}) is not supported", file, shorten(scaling, 20)),
                    "only models with plain rotary positions can be used");
  }
  return rope.value("rope_theta", j.value(old_key, otherwise));
}

void want(const json& j, const char* key, const json& wanted, const std::string& file) {
  if (j.contains(key) && !j[key].is_null() && j[key] != wanted)
    throw UserError(fmt::format("{}: {} {} is not supported", file, key, shorten(j[key].dump(), 40)));
}

void read_rotary_model(const json& j, const std::string& type, const std::string& file, ModelConfig& c) {
  c.width = read_count(j, "hidden_size", file);
  c.feed_forward_width = read_count(j, "intermediate_size", file);
  c.layers = read_count(j, "num_hidden_layers", file);
  c.heads = read_count(j, "num_attention_heads", file);
  c.key_value_heads =
      j.contains("num_key_value_heads") ? read_count(j, "num_key_value_heads", file) : c.heads;
  const int64_t usual_head = type == "gemma3_text" ? 256 : type == "qwen3" ? 128 : 0;
  c.head_width =
      j.contains("head_dim") && j["head_dim"].is_number() ? read_count(j, "head_dim", file) : usual_head;
  c.norm_epsilon = j.value("rms_norm_eps", 1e-6);
  c.max_positions = read_count(j, "max_position_embeddings", file);
  c.rotary_base =
      read_rotary_base(j, "rope_theta", "full_attention", type == "gemma3_text" ? 1e6 : 10000.0, file);
  if (type == "gemma3_text") {
    c.norm = NormKind::rms_plus_one;
    c.feed_forward = FeedForwardKind::geglu;
    c.outer_norms = c.head_norms = c.scaled_embedding = true;
    c.window = j.contains("sliding_window") ? read_count(j, "sliding_window", file) : 4096;
    const char* period =
        j.contains("_sliding_window_pattern") ? "_sliding_window_pattern" : "sliding_window_pattern";
    c.window_period = j.contains(period) ? read_count(j, period, file) : 6;
    c.window_rotary_base = read_rotary_base(j, "rope_local_base_freq", "sliding_attention", 10000.0, file);
    json kinds = json::array();
    for (int64_t layer = 0; layer < std::min<int64_t>(c.layers, 1000); ++layer)
      kinds.push_back(c.has_window(layer) ? "sliding_attention" : "full_attention");
    want(j, "layer_types", kinds, file);
    want(j, "hidden_activation", "gelu_pytorch_tanh", file);
    want(j, "attention_bias", false, file);
    want(j, "use_bidirectional_attention", false, file);
    const double scale = j.value("query_pre_attn_scalar", 256.0);
    if (scale != static_cast<double>(c.width_of_head()))
      throw UserError(fmt::format("{}: query_pre_attn_scalar {} is not supported, only the head's width, {}",
                                  file, scale, c.width_of_head()));
    for (const char* cap : {"final_logit_softcapping", "attn_logit_softcapping"}) want(j, cap, nullptr, file);
    return;
  }
  want(j, "hidden_act", "silu", file);
  want(j, "use_sliding_window", false, file);
  c.bias = type == "llama" && j.value("attention_bias", false);
  c.qkv_bias = type == "qwen2";
  c.head_norms = type == "qwen3";
  if (type == "qwen3") want(j, "attention_bias", false, file);
  if (type == "llama" && j.value("mlp_bias", c.bias) != c.bias)
    throw UserError(fmt::format("{}: biases in attention or feed-forward alone are not supported", file));
}

}  // namespace

ModelConfig read_hf_config(const json& j, const std::string& file) {
  if (!j.is_object()) throw UserError(fmt::format("{}: an object wanted", file));
  const std::string type = j.value("model_type", "");
  ModelConfig c;
  c.vocabulary = read_count(j, "vocab_size", file);
  c.tied = j.value("tie_word_embeddings", type == "gpt2" || type == "gemma3_text");
  c.attention = AttentionKind::causal;
  const json own = j.value("calque", json::object());
  if (own.contains("attention")) c.attention = read_enum<AttentionKind>(own, "attention", file);
  c.prompt = own.value("prompt", "");
  if (type == "llama" || type == "qwen2" || type == "qwen3" || type == "gemma3_text") {
    read_rotary_model(j, type, file, c);
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
    for (const Field& field : fields(c)) {
      if (!own.contains(field.name)) continue;
      try {
        field.read(YAML::Load(own[field.name].dump()), {});
      } catch (const std::exception& error) {
        throw UserError(fmt::format("{}: calque.{}: {}", file, field.name, error.what()));
      }
    }
  } else {
    throw UserError(fmt::format("{}: model_type \"{}\" is not supported", file, shorten(type, 40)),
                    "llama, gpt2, qwen2, qwen3, gemma3_text and calque are");
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
      static_cast<double>(config.vocabulary) * static_cast<double>(config.width) * (config.tied ? 1 : 2) +
      (config.positions == PositionKind::learned
           ? static_cast<double>(config.max_positions) * static_cast<double>(config.width)
           : 0.0);
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

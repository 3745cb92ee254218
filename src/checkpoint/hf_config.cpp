#include "calque/checkpoint/hf_config.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/text.h"

namespace calque {
namespace {

using nlohmann::json;

template <class Enum>
Enum read_enum(const json& value, const char* key, const std::string& file) {
  const auto& names = EnumNames<Enum>::names;
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  for (size_t i = 0; i < std::size(names); ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  throw UserError(fmt::format("{}: {}: unknown value \"{}\"", file, key, shorten(text, 40)));
}

int64_t read_count(const json& object, const char* key, const std::string& file) {
  constexpr int64_t most = 100'000'000;
  if (!object.contains(key) || !object[key].is_number_integer() || object[key].get<int64_t>() < 1 ||
      object[key].get<int64_t>() > most) {
    throw UserError(fmt::format("{}: {}: expected a positive integer, at most {}", file, key, most));
  }
  return object[key].get<int64_t>();
}

json layer_type_names(const ModelConfig& c) {
  json names = json::array();
  for (int64_t layer = 0; layer < c.layers; ++layer)
    names.push_back(c.slides(layer) ? "sliding_attention" : "full_attention");
  return names;
}

}  // namespace

json describe_model(const ModelConfig& given) {
  ModelConfig c = given;
  c.kv_heads = c.kv_head_count();
  c.head_size = c.head_size_or_default();
  json all = {{"vocabulary", c.vocabulary}};
  for (const Field& field : fields(c)) {
    if (field.name == "size" || field.name == "dropout") continue;  // not part of what the model is
    const YAML::Node value = field.write({});
    if (value.IsSequence()) {
      all[field.name] = value.as<std::vector<std::string>>();
      continue;
    }
    const std::string text = value.IsNull() ? "" : value.as<std::string>();
    const json parsed = json::parse(text, nullptr, false);
    all[field.name] = parsed.is_number() || parsed.is_boolean() ? parsed : json(text);
  }
  return all;
}

json hf_config(const ModelConfig& c) {
  json config = {{"vocab_size", c.vocabulary},
                 {"tie_word_embeddings", c.tied_embeddings},
                 {"torch_dtype", "float32"},
                 {"calque", {{"attention", name_of(c.attention)}, {"prompt", c.prompt}}}};
  const ArchitectureTraits* traits = find_architecture(c.architecture);
  // No class of transformers has prefix attention, positions that restart or embedding shortcuts: labelled as
  // a Llama, such a model would run without them and translate worse, in silence. It comes with a modelling
  // file of its own (src/checkpoint/transformers).
  if (traits == nullptr || c.extends_family()) {
    config.update({{"architectures", {"CalqueForCausalLM"}},
                   {"model_type", "calque"},
                   {"auto_map",
                    {{"AutoConfig", "configuration_calque.CalqueConfig"},
                     {"AutoModelForCausalLM", "modeling_calque.CalqueForCausalLM"}}}});
    config["calque"].update(describe_model(c));
    return config;
  }
  config.update({{"architectures", {traits->class_name}}, {"model_type", traits->model_type}});
  if (c.architecture == Architecture::gpt2) {
    config.update({{"n_embd", c.hidden_size},
                   {"n_inner", c.mlp_size},
                   {"n_layer", c.layers},
                   {"n_head", c.heads},
                   {"n_positions", c.context_length},
                   {"layer_norm_epsilon", c.norm_epsilon},
                   {"activation_function", "gelu_new"},
                   {"resid_pdrop", 0.0},
                   {"embd_pdrop", 0.0},
                   {"attn_pdrop", 0.0}});
    return config;
  }
  config.update({{"hidden_size", c.hidden_size},
                 {"intermediate_size", c.mlp_size},
                 {"num_hidden_layers", c.layers},
                 {"num_attention_heads", c.heads},
                 {"num_key_value_heads", c.kv_head_count()},
                 {"head_dim", c.head_size_or_default()},
                 {"rms_norm_eps", c.norm_epsilon},
                 {"rope_theta", c.rope_theta},
                 {"max_position_embeddings", c.context_length}});
  switch (c.architecture) {
    case Architecture::llama:
      config.update({{"hidden_act", "silu"}, {"attention_bias", c.bias}, {"mlp_bias", c.bias}});
      break;
    case Architecture::qwen2:
      config.update({{"hidden_act", "silu"}, {"use_sliding_window", false}});
      break;
    case Architecture::qwen3:
      config.update({{"hidden_act", "silu"}, {"use_sliding_window", false}, {"attention_bias", false}});
      break;
    case Architecture::gemma3:
      config.update({{"hidden_activation", "gelu_pytorch_tanh"},
                     {"attention_bias", false},
                     {"query_pre_attn_scalar", c.head_size_or_default()},
                     {"sliding_window", c.sliding_window},
                     {"layer_types", layer_type_names(c)},
                     {"rope_local_base_freq", c.rope_local_theta}});
      break;
    case Architecture::gpt2:
    case Architecture::calque:
      break;
  }
  return config;
}

namespace {

// Refuses a field whose value differs from the only one that is supported.
void require(const json& j, const char* key, const json& supported, const std::string& file) {
  if (j.contains(key) && !j[key].is_null() && j[key] != supported)
    throw UserError(fmt::format("{}: {} {} is not supported", file, key, shorten(j[key].dump(), 40)));
}

// Newer files have rope_parameters, by type of layer where these differ; older ones rope_scaling and
// rope_theta.
double read_rope_theta(const json& j, const char* old_key, const char* layer_type, double default_theta,
                       const std::string& file) {
  json rope = j.contains("rope_parameters") && j["rope_parameters"].is_object() ? j["rope_parameters"]
              : j.contains("rope_scaling") && j["rope_scaling"].is_object()     ? j["rope_scaling"]
                                                                                : json::object();
  if (rope.contains(layer_type) && rope[layer_type].is_object()) rope = json(rope[layer_type]);
  const std::string scaling = rope.value("rope_type", rope.value("type", "default"));
  if (scaling != "default") {
    throw UserError(fmt::format("{}: rope scaling ({}) is not supported", file, shorten(scaling, 20)),
                    "only models with plain RoPE can be used");
  }
  require(rope, "partial_rotary_factor", 1.0, file);
  return rope.value("rope_theta", j.value(old_key, default_theta));
}

void read_layer_types(const json& j, const std::string& file, ModelConfig& c) {
  c.layer_types.clear();
  if (j.contains("layer_types") && j["layer_types"].is_array()) {
    for (const json& one : j["layer_types"])
      c.layer_types.push_back(read_enum<LayerType>(one, "layer_types", file));
    if (static_cast<int64_t>(c.layer_types.size()) != c.layers)
      throw UserError(fmt::format("{}: layer_types has {} entries, but there are {} layers", file,
                                  c.layer_types.size(), c.layers));
    return;
  }
  const char* period =
      j.contains("_sliding_window_pattern") ? "_sliding_window_pattern" : "sliding_window_pattern";
  const int64_t length = j.contains(period) ? read_count(j, period, file) : 6;
  c.layer_types.assign(static_cast<size_t>(std::min<int64_t>(length, 1000)), LayerType::sliding_attention);
  c.layer_types.back() = LayerType::full_attention;
}

void read_gemma(const json& j, const std::string& file, ModelConfig& c) {
  c.sliding_window = j.contains("sliding_window") ? read_count(j, "sliding_window", file) : 4096;
  read_layer_types(j, file, c);
  if (std::count(c.layer_types.begin(), c.layer_types.end(), LayerType::sliding_attention) == 0)
    throw UserError(fmt::format("{}: layer_types without sliding_attention are not supported", file));
  c.rope_local_theta = read_rope_theta(j, "rope_local_base_freq", "sliding_attention", 10000.0, file);
  require(j, "hidden_activation", "gelu_pytorch_tanh", file);
  require(j, "attention_bias", false, file);
  require(j, "use_bidirectional_attention", false, file);
  const double scale = j.value("query_pre_attn_scalar", 256.0);
  if (scale != static_cast<double>(c.head_size_or_default()))
    throw UserError(fmt::format("{}: query_pre_attn_scalar {} is not supported, only the head size, {}", file,
                                scale, c.head_size_or_default()));
  for (const char* cap : {"final_logit_softcapping", "attn_logit_softcapping"})
    require(j, cap, nullptr, file);
}

void read_rope_model(const json& j, const ArchitectureTraits& traits, const std::string& file,
                     ModelConfig& c) {
  const bool gemma = traits.architecture == Architecture::gemma3;
  c.hidden_size = read_count(j, "hidden_size", file);
  c.mlp_size = read_count(j, "intermediate_size", file);
  c.layers = read_count(j, "num_hidden_layers", file);
  c.heads = read_count(j, "num_attention_heads", file);
  c.kv_heads = j.contains("num_key_value_heads") ? read_count(j, "num_key_value_heads", file) : c.heads;
  c.head_size = j.contains("head_dim") && j["head_dim"].is_number() ? read_count(j, "head_dim", file)
                                                                    : traits.default_head_size;
  c.norm_epsilon = j.value("rms_norm_eps", 1e-6);
  c.context_length = std::min(read_count(j, "max_position_embeddings", file), max_rope_positions);
  c.rope_theta = read_rope_theta(j, "rope_theta", "full_attention", gemma ? 1e6 : 10000.0, file);
  if (gemma) return read_gemma(j, file, c);
  require(j, "hidden_act", "silu", file);
  require(j, "use_sliding_window", false, file);
  require(j, "partial_rotary_factor", 1.0, file);
  for (const json& one : j.value("layer_types", json::array())) {
    if (one != "full_attention")
      throw UserError(fmt::format("{}: layer_types {} is not supported", file, shorten(one.dump(), 40)));
  }
  if (traits.architecture == Architecture::qwen3) require(j, "attention_bias", false, file);
  if (traits.architecture != Architecture::llama) return;
  c.bias = j.value("attention_bias", false);
  if (j.value("mlp_bias", c.bias) != c.bias)
    throw UserError(fmt::format("{}: biases in attention alone or MLP alone are not supported", file));
}

void read_gpt2(const json& j, const std::string& file, ModelConfig& c) {
  c.hidden_size = read_count(j, "n_embd", file);
  c.mlp_size =
      j.contains("n_inner") && j["n_inner"].is_number() ? read_count(j, "n_inner", file) : 4 * c.hidden_size;
  c.layers = read_count(j, "n_layer", file);
  c.heads = read_count(j, "n_head", file);
  c.context_length = read_count(j, "n_positions", file);
  c.norm_epsilon = j.value("layer_norm_epsilon", 1e-5);
  const std::string activation = j.value("activation_function", "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh")
    throw UserError(
        fmt::format("{}: activation_function {} is not supported", file, shorten(activation, 40)));
  require(j, "scale_attn_weights", true, file);
  require(j, "scale_attn_by_inverse_layer_idx", false, file);
  require(j, "add_cross_attention", false, file);
}

// Our own format has our own keys.
void read_own(const json& own, const std::string& file, ModelConfig& c) {
  c.architecture = Architecture::calque;
  for (const Field& field : fields(c)) {
    if (!own.contains(field.name)) continue;
    try {
      field.read(YAML::Load(own[field.name].dump()), {});
    } catch (const std::exception& error) {
      throw UserError(fmt::format("{}: calque.{}: {}", file, field.name, error.what()));
    }
  }
}

}  // namespace

ModelConfig read_hf_config(const json& j, const std::string& file) {
  if (!j.is_object()) throw UserError(fmt::format("{}: expected a JSON object", file));
  const std::string type = j.value("model_type", "");
  ModelConfig c;
  c.vocabulary = read_count(j, "vocab_size", file);
  const json own = j.value("calque", json::object());
  const auto all = architectures();
  const auto traits = std::find_if(all.begin(), all.end(),
                                   [&](const ArchitectureTraits& one) { return type == one.model_type; });
  if (traits != all.end()) {
    c.layer_types = {};
    apply_architecture(c, traits->architecture);
    c.tied_embeddings = j.value("tie_word_embeddings", traits->tied_embeddings == Fixed::yes);
    traits->architecture == Architecture::gpt2 ? read_gpt2(j, file, c) : read_rope_model(j, *traits, file, c);
  } else if (type == "calque") {
    read_own(own, file, c);
  } else {
    throw UserError(fmt::format("{}: model_type \"{}\" is not supported", file, shorten(type, 40)),
                    "supported: llama, gpt2, qwen2, qwen3, gemma3_text, calque");
  }
  c.attention = own.contains("attention")
                    ? read_enum<AttentionKind>(own["attention"], "calque.attention", file)
                    : AttentionKind::causal;
  c.prompt = own.value("prompt", "");
  try {
    check_model(c);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", file, error.what()), error.help());
  }
  return c;
}

}  // namespace calque

#include "calque/checkpoint/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "tiny_model.h"

namespace calque {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ModelConfig tiny() {
  ModelConfig c = tiny_config(20);
  c.hidden_size = 8;
  c.heads = 2;
  c.kv_heads = 1;
  c.mlp_size = 12;
  c.attention = AttentionKind::causal;
  return c;
}

ModelConfig tiny_own() {
  ModelConfig c = tiny();
  c.architecture = Architecture::calque;
  c.activation = Activation::relu;
  c.positions = PositionKind::sinusoidal;
  c.attention = AttentionKind::causal;
  return c;
}

// What reading the configuration's config.json says after a change to it.
std::string refusal_of(const ModelConfig& model, const std::function<void(json&)>& change) {
  json config = hf_config(model);
  change(config);
  try {
    read_hf_config(config, "config.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST(HfConfig, ConfigurationsSurviveARoundTrip) {
  auto all = every_kind();
  all.push_back(tiny_own());
  for (const ModelConfig& config : all) {
    const ModelConfig back = read_hf_config(hf_config(config), "config.json");
    EXPECT_EQ(hf_config(back), hf_config(config));
    EXPECT_EQ(back.architecture, config.architecture);
    EXPECT_EQ(back.attention, config.attention);
    for (int64_t layer = 0; layer < config.layers; ++layer)
      EXPECT_EQ(back.slides(layer), config.slides(layer));
  }
}

TEST(HfConfig, LayerTypesAreReadAndChecked) {
  ModelConfig gemma = tiny();
  gemma.sliding_window = 4;
  apply_architecture(gemma, Architecture::gemma3);
  json config = hf_config(gemma);
  config["layer_types"] = {"sliding_attention", "full_attention"};
  const ModelConfig read = read_hf_config(config, "config.json");
  EXPECT_TRUE(read.slides(0));
  EXPECT_FALSE(read.slides(1));
  config["layer_types"] = {"sliding_attention"};
  EXPECT_THROW(read_hf_config(config, "config.json"), UserError);
  config["layer_types"] = {"sliding_attention", "chunked_attention"};
  EXPECT_THROW(read_hf_config(config, "config.json"), UserError);
}

TEST(HfConfig, InvalidConfigurationsAreRefused) {
  const auto refusal = [](const std::function<void(json&)>& change) { return refusal_of(tiny(), change); };
  EXPECT_EQ(refusal([](json&) {}), "accepted");
  EXPECT_THAT(refusal([](json& c) { c["model_type"] = "mamba"; }), HasSubstr("\"mamba\" is not supported"));
  EXPECT_THAT(refusal([](json& c) { c["hidden_size"] = -4; }),
              HasSubstr("hidden_size: expected a positive integer"));
  EXPECT_THAT(refusal([](json& c) { c.erase("vocab_size"); }), HasSubstr("vocab_size"));
  EXPECT_THAT(refusal([](json& c) {
                c["rope_scaling"] = {{"type", "yarn"}};
              }),
              HasSubstr("rope scaling (yarn)"));
  // What only the model's own check notices names the file too.
  EXPECT_EQ(refusal([](json& c) { c["num_key_value_heads"] = 3; }),
            "config.json: model.heads=2 is not a multiple of model.kv_heads=3");
}

TEST(HfConfig, MoreRopePositionsThanATableShouldHaveAreCapped) {
  json config = hf_config(tiny());
  config["max_position_embeddings"] = 100'000'000;
  EXPECT_EQ(read_hf_config(config, "config.json").context_length, max_rope_positions);
  EXPECT_NO_THROW(Decoder(read_hf_config(config, "config.json")));
  EXPECT_EQ(refusal_of(tiny(), [](json& c) { c["max_position_embeddings"] = 100'000'001; }),
            "config.json: max_position_embeddings: expected a positive integer, at most 100000000");
  EXPECT_THAT(refusal_of(tiny_own(), [](json& c) { c["calque"]["context_length"] = 100'000'000; }),
              HasSubstr("config.json: calque.context_length: "));
}

// Variants of GPT-2 in transformers' GPT2Config that compute other logits from the same weights.
TEST(HfConfig, Gpt2VariantsThatAreNotComputedAreRefused) {
  ModelConfig gpt2 = tiny();
  gpt2.kv_heads = 0;
  apply_architecture(gpt2, Architecture::gpt2);
  const auto refusal = [&](const char* key, const json& value) {
    return refusal_of(gpt2, [&](json& c) { c[key] = value; });
  };
  for (const char* activation : {"gelu_new", "gelu_pytorch_tanh"})
    EXPECT_EQ(refusal("activation_function", activation), "accepted");
  for (const char* activation : {"gelu", "relu", "silu", "tanh", "no_such_activation", ""})
    EXPECT_EQ(refusal("activation_function", activation),
              std::string("config.json: activation_function ") + activation + " is not supported");
  EXPECT_EQ(refusal("scale_attn_weights", true), "accepted");
  EXPECT_EQ(refusal("scale_attn_weights", false), "config.json: scale_attn_weights false is not supported");
  EXPECT_EQ(refusal("scale_attn_by_inverse_layer_idx", false), "accepted");
  EXPECT_EQ(refusal("scale_attn_by_inverse_layer_idx", true),
            "config.json: scale_attn_by_inverse_layer_idx true is not supported");
  EXPECT_EQ(refusal("add_cross_attention", true), "config.json: add_cross_attention true is not supported");
  EXPECT_EQ(refusal("tie_word_embeddings", false),
            "config.json: model.tied_embeddings=false does not fit model.architecture=gpt2");
}

TEST(HfConfig, Gpt2SizesAndEpsilonAreRead) {
  ModelConfig gpt2 = tiny();
  gpt2.kv_heads = 0;
  apply_architecture(gpt2, Architecture::gpt2);
  json config = hf_config(gpt2);
  config["n_inner"] = nullptr;  // GPT2Config's default: four times the hidden size
  config["layer_norm_epsilon"] = 3e-4;
  const ModelConfig read = read_hf_config(config, "config.json");
  EXPECT_EQ(read.mlp_size, 4 * gpt2.hidden_size);
  EXPECT_EQ(read.norm_epsilon, 3e-4);
  config["n_inner"] = 20;
  config.erase("layer_norm_epsilon");
  EXPECT_EQ(read_hf_config(config, "config.json").mlp_size, 20);
  EXPECT_EQ(read_hf_config(config, "config.json").norm_epsilon, 1e-5);
}

// What transformers' own classes need, key by key.
TEST(HfConfig, EachArchitectureIsWrittenWithItsOwnKeys) {
  const json every = {{"vocab_size", 20},
                      {"tie_word_embeddings", true},
                      {"torch_dtype", "float32"},
                      {"calque", {{"attention", "causal"}, {"prompt", "{source}: {target}"}}}};
  const json rope = {{"hidden_size", 8},         {"intermediate_size", 12},  {"num_hidden_layers", 2},
                     {"num_attention_heads", 2}, {"num_key_value_heads", 1}, {"head_dim", 6},
                     {"rms_norm_eps", 3e-4},     {"rope_theta", 5000.0},     {"max_position_embeddings", 77}};
  const auto written = [](Architecture architecture) {
    ModelConfig c = tiny();
    c.prompt = "{source}: {target}";
    c.head_size = 6;
    c.norm_epsilon = 3e-4;
    c.rope_theta = 5000;
    c.context_length = 77;
    if (architecture == Architecture::gemma3) {
      c.sliding_window = 9;
      c.layer_types = {LayerType::sliding_attention, LayerType::full_attention};
      c.rope_local_theta = 300;
    }
    apply_architecture(c, architecture);
    return hf_config(c);
  };
  const auto with = [&](const json& more, const json& extra) {
    json all = every;
    all.update(more);
    all.update(extra);
    return all;
  };
  EXPECT_EQ(written(Architecture::llama), with(rope, {{"architectures", {"LlamaForCausalLM"}},
                                                      {"model_type", "llama"},
                                                      {"hidden_act", "silu"},
                                                      {"attention_bias", false},
                                                      {"mlp_bias", false}}));
  EXPECT_EQ(written(Architecture::qwen2), with(rope, {{"architectures", {"Qwen2ForCausalLM"}},
                                                      {"model_type", "qwen2"},
                                                      {"hidden_act", "silu"},
                                                      {"use_sliding_window", false}}));
  EXPECT_EQ(written(Architecture::qwen3), with(rope, {{"architectures", {"Qwen3ForCausalLM"}},
                                                      {"model_type", "qwen3"},
                                                      {"hidden_act", "silu"},
                                                      {"use_sliding_window", false},
                                                      {"attention_bias", false}}));
  EXPECT_EQ(written(Architecture::gemma3),
            with(rope, {{"architectures", {"Gemma3ForCausalLM"}},
                        {"model_type", "gemma3_text"},
                        {"hidden_activation", "gelu_pytorch_tanh"},
                        {"attention_bias", false},
                        {"query_pre_attn_scalar", 6},
                        {"sliding_window", 9},
                        {"layer_types", {"sliding_attention", "full_attention"}},
                        {"rope_local_base_freq", 300.0}}));
  EXPECT_EQ(written(Architecture::gpt2), with(json::object(), {{"architectures", {"GPT2LMHeadModel"}},
                                                               {"model_type", "gpt2"},
                                                               {"n_embd", 8},
                                                               {"n_inner", 12},
                                                               {"n_layer", 2},
                                                               {"n_head", 2},
                                                               {"n_positions", 77},
                                                               {"layer_norm_epsilon", 3e-4},
                                                               {"activation_function", "gelu_new"},
                                                               {"resid_pdrop", 0.0},
                                                               {"embd_pdrop", 0.0},
                                                               {"attn_pdrop", 0.0}}));
}

TEST(HfConfig, EveryFieldOfALlamaIsRead) {
  ModelConfig c = tiny();
  c.head_size = 6;
  c.norm_epsilon = 3e-4;
  c.rope_theta = 5000;
  c.context_length = 77;
  c.bias = true;
  c.tied_embeddings = false;
  c.prompt = "{source}: {target}";
  const ModelConfig back = read_hf_config(hf_config(c), "config.json");
  EXPECT_EQ(describe_model(back), describe_model(c));
  EXPECT_EQ(back.head_size, 6);
  EXPECT_EQ(back.norm_epsilon, 3e-4);
  EXPECT_EQ(back.rope_theta, 5000);
  EXPECT_EQ(back.context_length, 77);
  EXPECT_TRUE(back.bias);
  EXPECT_FALSE(back.tied_embeddings);
  EXPECT_EQ(back.prompt, c.prompt);
}

// The defaults of LlamaConfig, Qwen3Config and Gemma3TextConfig in transformers.
TEST(HfConfig, MissingFieldsHaveTheDefaultsOfTransformers) {
  json config = hf_config(tiny());
  for (const char* key : {"num_key_value_heads", "head_dim", "rms_norm_eps", "rope_theta",
                          "tie_word_embeddings", "attention_bias", "mlp_bias", "hidden_act", "calque"})
    config.erase(key);
  const ModelConfig llama = read_hf_config(config, "config.json");
  EXPECT_EQ(llama.kv_heads, 2);
  EXPECT_EQ(llama.head_size, 0);
  EXPECT_EQ(llama.norm_epsilon, 1e-6);
  EXPECT_EQ(llama.rope_theta, 10000);
  EXPECT_FALSE(llama.tied_embeddings);
  EXPECT_FALSE(llama.bias);
  EXPECT_EQ(llama.attention, AttentionKind::causal);
  EXPECT_EQ(llama.prompt, "");
  config["head_dim"] = nullptr;
  EXPECT_EQ(read_hf_config(config, "config.json").head_size, 0);
  config["model_type"] = "qwen3";
  EXPECT_EQ(read_hf_config(config, "config.json").head_size, 128);
  config["model_type"] = "gemma3_text";
  const ModelConfig gemma = read_hf_config(config, "config.json");
  EXPECT_EQ(gemma.head_size, 256);
  EXPECT_EQ(gemma.rope_theta, 1e6);
  EXPECT_EQ(gemma.rope_local_theta, 10000);
  EXPECT_EQ(gemma.sliding_window, 4096);
  EXPECT_TRUE(gemma.tied_embeddings);
  EXPECT_EQ(gemma.layer_types.size(), 6U);
  for (int64_t layer = 0; layer < 6; ++layer) EXPECT_EQ(gemma.slides(layer), layer != 5);
  for (const char* key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    json other = config;
    other[key] = 3;
    other["sliding_window"] = 17;
    EXPECT_EQ(read_hf_config(other, "config.json").layer_types.size(), 3U);
    EXPECT_FALSE(read_hf_config(other, "config.json").slides(2));
    EXPECT_EQ(read_hf_config(other, "config.json").sliding_window, 17);
  }
}

TEST(HfConfig, RopeIsReadFromNewFilesAndOld) {
  json config = hf_config(tiny());
  config["rope_theta"] = 2.0;
  const auto theta = [&] { return read_hf_config(config, "config.json").rope_theta; };
  EXPECT_EQ(theta(), 2);
  config["rope_scaling"] = {{"type", "default"}, {"rope_theta", 3.0}};
  EXPECT_EQ(theta(), 3);
  config["rope_scaling"] = nullptr;
  EXPECT_EQ(theta(), 2);
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 4.0}};
  EXPECT_EQ(theta(), 4);
  config["rope_parameters"] = {{"full_attention", {{"rope_theta", 5.0}}},
                               {"sliding_attention", {{"rope_theta", 6.0}}}};
  EXPECT_EQ(theta(), 5);
  config["rope_parameters"] = {{"full_attention", {{"rope_type", "yarn"}}}};
  EXPECT_THROW(theta(), UserError);
  ModelConfig gemma = tiny();
  gemma.sliding_window = 4;
  gemma.layer_types = {LayerType::sliding_attention};
  apply_architecture(gemma, Architecture::gemma3);
  json both = hf_config(gemma);
  both["rope_parameters"] = {{"full_attention", {{"rope_theta", 5.0}}},
                             {"sliding_attention", {{"rope_theta", 6.0}}}};
  EXPECT_EQ(read_hf_config(both, "config.json").rope_theta, 5);
  EXPECT_EQ(read_hf_config(both, "config.json").rope_local_theta, 6);
}

TEST(HfConfig, CountsAreFromOneToAHundredMillion) {
  const auto with = [](const json& value) {
    return refusal_of(tiny_own(), [&](json& c) { c["vocab_size"] = value; });
  };
  for (const json& good : {json(1), json(100'000'000)}) EXPECT_EQ(with(good), "accepted") << good;
  for (const json& bad : {json(0), json(100'000'001), json(-1), json(2.5), json("3"), json()})
    EXPECT_THAT(with(bad), HasSubstr("vocab_size: expected a positive integer, at most 100000000")) << bad;
}

TEST(HfConfig, VariantsThatAreNotComputedAreRefused) {
  ModelConfig gemma = tiny();
  gemma.sliding_window = 4;
  gemma.layer_types = {LayerType::sliding_attention};
  apply_architecture(gemma, Architecture::gemma3);
  ModelConfig qwen3 = tiny();
  apply_architecture(qwen3, Architecture::qwen3);
  ModelConfig qwen2 = tiny();
  apply_architecture(qwen2, Architecture::qwen2);
  struct Case {
    ModelConfig model;
    const char* key;
    json value;
    const char* reason;
  };
  const Case cases[] = {
      {tiny(), "hidden_act", "gelu", "hidden_act \"gelu\" is not supported"},
      {tiny(), "use_sliding_window", true, "use_sliding_window true is not supported"},
      {tiny(), "mlp_bias", true, "biases in attention alone or MLP alone"},
      {qwen2, "hidden_act", "gelu", "hidden_act"},
      {qwen2, "use_sliding_window", true, "use_sliding_window"},
      {qwen3, "attention_bias", true, "attention_bias true is not supported"},
      {gemma, "hidden_activation", "silu", "hidden_activation"},
      {gemma, "attention_bias", true, "attention_bias"},
      {gemma, "use_bidirectional_attention", true, "use_bidirectional_attention"},
      {gemma, "final_logit_softcapping", 30.0, "final_logit_softcapping"},
      {gemma, "attn_logit_softcapping", 50.0, "attn_logit_softcapping"},
      {gemma, "query_pre_attn_scalar", 5, "query_pre_attn_scalar 5 is not supported, only the head size, 4"},
      {gemma, "layer_types", {"full_attention", "full_attention"}, "without sliding_attention"},
      {gemma, "sliding_window", 0, "sliding_window: expected a positive integer"}};
  for (const Case& c : cases) {
    EXPECT_THAT(refusal_of(c.model, [&](json& j) { j[c.key] = c.value; }), HasSubstr(c.reason));
    EXPECT_EQ(refusal_of(c.model, [](json&) {}), "accepted");
  }
  // A qwen2 file may have any attention_bias: its class does not look at it.
  EXPECT_EQ(refusal_of(qwen2, [](json& j) { j["attention_bias"] = true; }), "accepted");
  EXPECT_EQ(refusal_of(gemma, [](json& j) { j["final_logit_softcapping"] = nullptr; }), "accepted");
  EXPECT_THAT(refusal_of(tiny(), [](json& j) { j = json::array(); }), HasSubstr("expected a JSON object"));
  EXPECT_THAT(refusal_of(tiny(), [](json& j) { j["calque"]["attention"] = "both"; }),
              HasSubstr("calque.attention: unknown value \"both\""));
  EXPECT_THAT(refusal_of(tiny(), [](json& j) { j["calque"]["attention"] = 3; }),
              HasSubstr("unknown value \"3\""));
}

TEST(HfConfig, ADescriptionHasEveryOptionWithItsDefaultResolved) {
  ModelConfig c = tiny_own();
  c.kv_heads = 0;
  c.dropout = 0.5;
  const json described = describe_model(c);
  EXPECT_EQ(described["vocabulary"], 20);
  EXPECT_EQ(described["kv_heads"], 2);
  EXPECT_EQ(described["head_size"], 4);
  EXPECT_EQ(described["positions"], "sinusoidal");
  EXPECT_EQ(described["qk_norm"], false);
  EXPECT_EQ(described["norm_epsilon"], 1e-5);
  EXPECT_EQ(described["prompt"], "");
  EXPECT_EQ(described["layer_types"], json::array());
  EXPECT_FALSE(described.contains("dropout"));
  EXPECT_FALSE(described.contains("size"));
  EXPECT_EQ(described.size(), fields(c).size() - 2 + 1);
}

TEST(HfConfig, NumbersThatNoModelCanHaveAreRefused) {
  const auto set = [](const char* key, const json& value) {
    return [=](json& config) { config[key] = value; };
  };
  EXPECT_THAT(refusal_of(tiny(), set("rms_norm_eps", -1)), HasSubstr("config.json: model.norm_epsilon=-1"));
  EXPECT_THAT(refusal_of(tiny(), set("rms_norm_eps", 0)), HasSubstr("model.norm_epsilon"));
  EXPECT_THAT(refusal_of(tiny(), set("rope_theta", 0)), HasSubstr("model.rope_theta=0"));
  EXPECT_THAT(refusal_of(tiny(), set("partial_rotary_factor", 0.5)), HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(refusal_of(tiny(), set("partial_rotary_factor", 1.0)), HasSubstr("accepted"));
  EXPECT_THAT(refusal_of(tiny(), set("layer_types", {"full_attention", "sliding_attention"})),
              HasSubstr("layer_types"));
  EXPECT_THAT(refusal_of(tiny(), set("layer_types", {"full_attention"})), HasSubstr("accepted"));
}

}  // namespace calque

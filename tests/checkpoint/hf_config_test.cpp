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

}  // namespace calque

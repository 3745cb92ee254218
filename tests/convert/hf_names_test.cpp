#include "calque/convert/hf_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "calque/base/error.h"
#include "temporary_folder.h"

namespace calque {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ModelConfig tiny() {
  ModelConfig c;
  c.layers = 2;
  c.width = 8;
  c.heads = 2;
  c.key_value_heads = 1;
  c.feed_forward_width = 12;
  c.max_positions = 16;
  c.vocabulary = 20;
  return c;
}

ModelConfig tiny_gpt2() {
  ModelConfig c = tiny();
  c.key_value_heads = 0;
  c.norm = NormKind::layer;
  c.positions = PositionKind::learned;
  c.feed_forward = FeedForwardKind::gelu;
  c.bias = true;
  return c;
}

ModelConfig tiny_own() {
  ModelConfig c = tiny();
  c.feed_forward = FeedForwardKind::relu;
  c.positions = PositionKind::sinusoidal;
  c.attention = AttentionKind::causal;
  return c;
}

}  // namespace

TEST(HfNames, AModelIsSavedAsWhatItIs) {
  EXPECT_EQ(architecture_of(tiny()), Architecture::llama);
  EXPECT_EQ(architecture_of(tiny_gpt2()), Architecture::gpt2);
  EXPECT_EQ(architecture_of(tiny_own()), Architecture::calque);
}

TEST(HfNames, LlamaNamesAndShapesAreTransformers) {
  Decoder decoder(tiny());
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, view] : hf_views(decoder)) shapes[name] = view.sizes().vec();
  EXPECT_EQ(shapes.size(), 1u + 2 * 9 + 1);
  EXPECT_EQ(shapes.at("model.embed_tokens.weight"), (std::vector<int64_t>{20, 8}));
  EXPECT_EQ(shapes.at("model.layers.1.self_attn.q_proj.weight"), (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(shapes.at("model.layers.1.self_attn.v_proj.weight"), (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(shapes.at("model.layers.0.mlp.gate_proj.weight"), (std::vector<int64_t>{12, 8}));
  EXPECT_EQ(shapes.at("model.layers.0.mlp.down_proj.weight"), (std::vector<int64_t>{8, 12}));
  EXPECT_FALSE(shapes.contains("lm_head.weight"));  // tied
}

TEST(HfNames, WeightsComeBackAsTheyWere) {
  const TemporaryFolder folder;
  for (const ModelConfig& config : {tiny(), tiny_gpt2(), tiny_own()}) {
    Decoder first(config), second(config);
    first.initialise(1);
    second.initialise(2);
    write_safetensors(folder / "m", hf_views(first), {});
    load_weights(second, Safetensors(folder / "m"), "m");
    const auto a = first.named_parameters(), b = second.named_parameters();
    for (const auto& parameter : a)
      EXPECT_TRUE(torch::equal(parameter.value(), b[parameter.key()])) << parameter.key();
  }
}

TEST(HfNames, ConfigurationsComeBackAsTheyWere) {
  for (const ModelConfig& config : {tiny(), tiny_gpt2(), tiny_own()}) {
    ModelConfig back = read_hf_config(hf_config(config), "config.json");
    EXPECT_EQ(hf_config(back), hf_config(config));
    EXPECT_EQ(back.attention, config.attention);
  }
}

TEST(HfNames, ConfigurationsThatCannotBeAreRefused) {
  const auto refusal = [](const std::function<void(json&)>& change) {
    json config = hf_config(tiny());
    change(config);
    try {
      read_hf_config(config, "config.json");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal([](json&) {}), "accepted");
  EXPECT_THAT(refusal([](json& c) { c["model_type"] = "mamba"; }), HasSubstr("\"mamba\" is not supported"));
  EXPECT_THAT(refusal([](json& c) { c["hidden_size"] = -4; }),
              HasSubstr("hidden_size: a whole number above 0 wanted"));
  EXPECT_THAT(refusal([](json& c) { c.erase("vocab_size"); }), HasSubstr("vocab_size"));
  EXPECT_THAT(refusal([](json& c) {
                c["rope_scaling"] = {{"type", "yarn"}};
              }),
              HasSubstr("rope scaling (yarn)"));
  EXPECT_THAT(refusal([](json& c) { c["num_key_value_heads"] = 3; }), HasSubstr("no multiple"));
}

TEST(HfNames, WrongTensorsAreNamedWithBothShapes) {
  const TemporaryFolder folder;
  Decoder decoder(tiny());
  decoder.initialise(1);
  const auto refusal = [&](NamedTensors tensors) {
    write_safetensors(folder / "m", tensors, {});
    try {
      load_weights(decoder, Safetensors(folder / "m"), "m");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  NamedTensors good = hf_views(decoder), missing = good, surplus = good, misshapen = good;
  missing.pop_back();
  surplus.emplace_back("model.extra.weight", torch::zeros({2}));
  misshapen[0].second = torch::zeros({20, 9});
  EXPECT_EQ(refusal(good), "accepted");
  EXPECT_THAT(refusal(missing), HasSubstr("no tensor model.norm.weight"));
  EXPECT_EQ(refusal(surplus), "m: model.extra.weight is not part of this model");
  EXPECT_EQ(refusal(misshapen), "m: model.embed_tokens.weight is [20, 9], [20, 8] wanted");
}

}  // namespace calque

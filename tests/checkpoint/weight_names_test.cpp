#include "calque/checkpoint/weight_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/small_checkpoint.h"

namespace calque {
namespace {

using testing::HasSubstr;

ModelConfig narrow_llama() {
  ModelConfig c = tiny_config(20);
  c.hidden_size = 8;
  c.heads = 2;
  c.kv_heads = 1;
  c.mlp_size = 12;
  return c;
}

// The fewest weights in a file that such a model is allowed to have.
int64_t fewest_weights(const ModelConfig& config) {
  int64_t low = 0, high = int64_t{1} << 40;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (refusal([&] { check_weight_count(config, middle, "m"); }) == "accepted")
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace

TEST(WeightNames, LlamaNamesAndShapesMatchTransformers) {
  Decoder decoder(narrow_llama());
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, view] : weight_views(decoder)) shapes[name] = view.sizes().vec();
  EXPECT_EQ(shapes.size(), 1u + 2 * 9 + 1);
  EXPECT_EQ(shapes.at("model.embed_tokens.weight"), (std::vector<int64_t>{20, 8}));
  EXPECT_EQ(shapes.at("model.layers.1.self_attn.q_proj.weight"), (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(shapes.at("model.layers.1.self_attn.v_proj.weight"), (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(shapes.at("model.layers.0.mlp.gate_proj.weight"), (std::vector<int64_t>{12, 8}));
  EXPECT_EQ(shapes.at("model.layers.0.mlp.down_proj.weight"), (std::vector<int64_t>{8, 12}));
  EXPECT_FALSE(shapes.contains("lm_head.weight"));  // tied
}

TEST(WeightNames, WeightsSurviveARoundTrip) {
  const TemporaryFolder folder;
  for (const ModelConfig& config : every_kind()) {
    Decoder first(config), second(config);
    first.initialise(1);
    second.initialise(2);
    write_safetensors(folder / "m", weight_views(first), {});
    load_weights(second, Safetensors(folder / "m"), "m");
    const auto a = first.named_parameters(), b = second.named_parameters();
    for (const auto& parameter : a)
      EXPECT_TRUE(torch::equal(parameter.value(), b[parameter.key()])) << parameter.key();
  }
}

TEST(WeightNames, WrongTensorsAreReportedWithBothShapes) {
  const TemporaryFolder folder;
  Decoder decoder(narrow_llama());
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
  NamedTensors good = weight_views(decoder), missing = good, unexpected = good, misshapen = good;
  missing.pop_back();
  unexpected.emplace_back("model.extra.weight", torch::zeros({2}));
  misshapen[0].second = torch::zeros({20, 9});
  EXPECT_EQ(refusal(good), "accepted");
  EXPECT_THAT(refusal(missing), HasSubstr("no tensor model.norm.weight"));
  EXPECT_EQ(refusal(unexpected), "m: model.extra.weight is not part of config.json's model");
  EXPECT_EQ(refusal(misshapen), "m: model.embed_tokens.weight has shape [20, 9], config.json says [20, 8]");
}

TEST(WeightNames, FusedMatricesAreViewsOfTheirRows) {
  ModelConfig config = tiny_config();
  config.bias = true;
  const auto decoder = make_decoder(config);
  std::map<std::string, torch::Tensor> views;
  for (const auto& [name, view] : weight_views(*decoder)) views[name] = view;
  const Block& block = *decoder->blocks[1];
  const auto rows = [&](const Linear& linear, int64_t begin, int64_t end, const std::string& name) {
    EXPECT_TRUE(
        torch::equal(views.at("model.layers.1." + name + ".weight"), linear.weight.slice(0, begin, end)));
    EXPECT_TRUE(torch::equal(views.at("model.layers.1." + name + ".bias"), linear.bias.slice(0, begin, end)));
  };
  rows(*block.attention->qkv, 0, 16, "self_attn.q_proj");
  rows(*block.attention->qkv, 16, 24, "self_attn.k_proj");
  rows(*block.attention->qkv, 24, 32, "self_attn.v_proj");
  rows(*block.attention->output, 0, 16, "self_attn.o_proj");
  rows(*block.feed_forward->up, 0, 24, "mlp.gate_proj");
  rows(*block.feed_forward->up, 24, 48, "mlp.up_proj");
  rows(*block.feed_forward->down, 0, 16, "mlp.down_proj");
}

// Half of what the configuration needs, less a million.
TEST(WeightNames, AConfigurationMayNeedTwiceTheWeightsOfItsFileAndAMillion) {
  ModelConfig config = tiny_config(5000);
  config.layers = 3;
  config.hidden_size = 1000;
  config.heads = 10;
  config.kv_heads = 5;
  config.mlp_size = 2000;
  const int64_t blocks = 3 * (1000 * 100 * (10 + 5 + 5 + 10) + 3 * 1000 * 2000), vocabulary = 5000 * 1000;
  EXPECT_EQ(fewest_weights(config), (blocks + vocabulary - 1'000'000) / 2);
  config.tied_embeddings = false;
  EXPECT_EQ(fewest_weights(config), (blocks + 2 * vocabulary - 1'000'000) / 2);
  config.activation = Activation::gelu;
  EXPECT_EQ(fewest_weights(config), (blocks - 3 * 1000 * 2000 + 2 * vocabulary - 1'000'000) / 2);
  config.positions = PositionKind::learned;
  config.context_length = 4000;
  EXPECT_EQ(fewest_weights(config),
            (blocks - 3 * 1000 * 2000 + 2 * vocabulary + 4000 * 1000 - 1'000'000) / 2);
  EXPECT_EQ(refusal([&] { check_weight_count(config, 5, "m"); }),
            "m: its model has 35000000 weights, but 5 are stored");
}

TEST(WeightNames, ANaNIsFoundWhereverItIs) {
  const TemporaryFolder folder;
  const auto decoder = make_decoder(tiny_config());
  for (const double value : {std::nan(""), static_cast<double>(INFINITY)}) {
    NamedTensors tensors;
    for (const auto& [name, view] : weight_views(*decoder)) tensors.emplace_back(name, view.clone());
    tensors.back().second[15] = value;
    write_safetensors(folder / "m", tensors, {});
    EXPECT_EQ(refusal([&] { load_weights(*make_decoder(tiny_config()), Safetensors(folder / "m"), "m"); }),
              "m: model.norm.weight contains NaN or infinite values");
  }
}

TEST(WeightNames, LargeWeightsWhoseSumOverflowsAreFinite) {
  const TemporaryFolder folder;
  const auto decoder = make_decoder(tiny_config());
  {
    const torch::NoGradGuard no_gradients;
    decoder->norm->weight.fill_(3e38);
  }
  write_safetensors(folder / "m", weight_views(*decoder), {});
  EXPECT_NO_THROW(load_weights(*make_decoder(tiny_config()), Safetensors(folder / "m"), "m"));
}

}  // namespace calque

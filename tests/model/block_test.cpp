// The parts of a block, and what is before and behind the blocks, against the formulas.
#include "calque/model/block.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "calque/model/batch_layout.h"
#include "calque/model/embedding.h"
#include "kernels/compare.h"
#include "tiny_model.h"

namespace calque {
namespace {

const Layout& no_layout() {
  static const Layout layout = [] {
    Layout all;
    all.positions = index_tensor({0, 1, 2, 5});
    return all;
  }();
  return layout;
}

}  // namespace

TEST(FeedForward, MultipliesTheActivatedGatesByTheValues) {
  at::manual_seed(5);
  const torch::NoGradGuard no_gradients;
  const auto x = torch::randn({4, 16});
  const auto inner = [](Activation activation, const torch::Tensor& up) {
    const auto halves = up.chunk(2, 1);
    if (activation == Activation::swiglu) return torch::silu(halves[0]) * halves[1];
    if (activation == Activation::geglu) return torch::gelu(halves[0], "tanh") * halves[1];
    return activation == Activation::gelu ? torch::gelu(up, "tanh") : torch::relu(up);
  };
  for (const Activation activation :
       {Activation::swiglu, Activation::geglu, Activation::gelu, Activation::relu}) {
    for (const bool bias : {false, true}) {
      ModelConfig config = tiny_config();
      config.activation = activation;
      config.bias = bias;
      FeedForward mlp(config);
      for (auto& parameter : mlp.parameters()) parameter.normal_();
      EXPECT_EQ(mlp.parameters().size(), bias ? 4U : 2U);
      EXPECT_EQ(mlp.up->outputs(), config.is_gated() ? 48 : 24);
      const auto expected = torch::linear(inner(activation, torch::linear(x, mlp.up->weight, mlp.up->bias)),
                                          mlp.down->weight, mlp.down->bias);
      expect_close(mlp.forward(x, {no_layout()}), expected, 1e-5, std::string(name_of(activation)));
    }
  }
}

TEST(Attention, BiasesAndShapeFollowTheConfiguration) {
  for (const auto& [bias, qkv_bias] :
       std::vector<std::pair<bool, bool>>{{false, false}, {false, true}, {true, false}, {true, true}}) {
    ModelConfig config = tiny_config();
    config.bias = bias;
    config.qkv_bias = qkv_bias;
    const Attention attention(config, 0);
    EXPECT_EQ(attention.qkv->bias.defined(), bias || qkv_bias);
    EXPECT_EQ(attention.output->bias.defined(), bias);
    EXPECT_EQ(attention.shape.scale, 0.5);  // 1 / √4, the size of a head
    EXPECT_EQ(attention.shape.heads, 4);
    EXPECT_EQ(attention.shape.kv_heads, 2);
    EXPECT_EQ(attention.shape.sliding_window, 0);
  }
}

TEST(Norm, NormalisesByItsKind) {
  at::manual_seed(6);
  const torch::NoGradGuard no_gradients;
  const auto x = torch::randn({4, 16}) + 0.5, noise = torch::randn({16});
  for (const NormKind kind : {NormKind::rms, NormKind::rms_plus_one, NormKind::layer}) {
    ModelConfig config = tiny_config();
    config.norm = kind;
    config.norm_epsilon = 0.01;
    Norm norm(config, 16);
    const bool is_layer = kind == NormKind::layer;
    EXPECT_EQ(norm.parameters().size(), is_layer ? 2U : 1U);
    const auto centred = is_layer ? x - x.mean(1, true) : x;
    const auto plain = centred / (centred.square().mean(1, true) + 0.01).sqrt();
    expect_close(norm.forward(x), plain, 1e-5, "initial");  // a factor of one
    norm.weight.add_(noise);
    if (is_layer) norm.bias.sub_(noise);
    expect_close(norm.forward(x), plain * (1 + noise) - (is_layer ? noise : torch::zeros({16})), 1e-5,
                 std::string(name_of(kind)));
  }
}

TEST(Embedding, AddsPositionsAndScales) {
  const torch::NoGradGuard no_gradients;
  const auto tokens = index_tensor({7, 0, 39, 7});
  for (const bool scaled : {false, true}) {
    for (const PositionKind positions :
         {PositionKind::rope, PositionKind::learned, PositionKind::sinusoidal}) {
      ModelConfig config = tiny_config();
      config.scale_embeddings = scaled;
      config.positions = positions;
      Embedding embedding(config);
      embedding.weight.normal_();
      if (positions == PositionKind::learned) embedding.positions.normal_();
      EXPECT_EQ(embedding.parameters().size(), positions == PositionKind::learned ? 2U : 1U);
      const auto found = embedding.forward(tokens, {no_layout()});
      const int64_t places[] = {0, 1, 2, 5};
      for (int64_t row = 0; row < 4; ++row) {
        for (int64_t i = 0; i < 16; ++i) {
          double expected =
              embedding.weight[tokens[row].item<int64_t>()][i].item<double>() * (scaled ? 4 : 1);
          const auto place = static_cast<double>(places[row]);
          if (positions == PositionKind::learned)
            expected += embedding.positions[places[row]][i].item<double>();
          // Vaswani et al. (2017), the sines first.
          const double angle = place / std::pow(10000.0, static_cast<double>(2 * (i % 8)) / 16);
          if (positions == PositionKind::sinusoidal) expected += i < 8 ? std::sin(angle) : std::cos(angle);
          EXPECT_NEAR(found[row][i].item<double>(), expected, 1e-5) << row << " " << i;
        }
      }
    }
  }
}

TEST(Block, AHookMayKeepWhatItSees) {
  const auto model = make_decoder(tiny_config());
  const torch::NoGradGuard no_gradients;
  Batch batch;
  batch.add({{1}, {3}, 2}, std::vector<int32_t>{10, 11, 12}, std::vector<int32_t>{20, 21});
  std::map<std::string, std::pair<torch::Tensor, torch::Tensor>> kept;
  const Hook hook = [&](const std::string& name, const torch::Tensor& value) {
    kept[name] = {value, value.clone()};
  };
  model->logits(index_tensor(batch.tokens), batch_layout(batch, ModelConfig{}), &hook);
  for (const auto& [name, values] : kept)
    EXPECT_TRUE(torch::equal(values.first, values.second)) << name << " was overwritten";
  std::string names;
  for (const auto& [name, values] : kept) names += name + "\n";
  const auto block = [](const std::string& i) {
    return "blocks." + i + ".attention.heads\nblocks." + i + ".attention.kv\nblocks." + i +
           ".attention.output\nblocks." + i + ".attention.q\nblocks." + i + ".attention.weights.0\nblocks." +
           i + ".feed_forward.inner\nblocks." + i + ".feed_forward.output\nblocks." + i + ".output\n";
  };
  EXPECT_EQ(names, block("0") + block("1") + "embedding\nlogits\nnorm\n");
}

TEST(Block, MatricesNameTheirPartsAndPaths) {
  const auto rows = [](const ModelConfig& config) {
    std::string all;
    for (const Block::Matrix& one : Block(config, 0).matrices()) {
      all += fmt::format("{} {}", one.name, one.path);
      for (const int64_t part : one.part_rows) all += fmt::format(" {}", part);
      all += '\n';
    }
    return all;
  };
  EXPECT_EQ(rows(tiny_config()),
            "qkv attention.qkv 16 8 8\noutput attention.output 16\nup feed_forward.up 24 24\ndown "
            "feed_forward.down 16\n");
  ModelConfig plain = tiny_config();
  plain.activation = Activation::relu;
  plain.head_size = 6;
  plain.kv_heads = 0;
  EXPECT_EQ(rows(plain),
            "qkv attention.qkv 24 24 24\noutput attention.output 16\nup feed_forward.up 24\ndown "
            "feed_forward.down 16\n");
}

TEST(BatchLayout, TheQueriesAreTheRowsThatCarryLoss) {
  Batch batch;
  batch.add({{1}, {3}, 2}, std::vector<int32_t>{10, 11}, std::vector<int32_t>{20});
  batch.add({{1}, {}, 2}, {}, std::vector<int32_t>{21, 22});  // plain text
  const Layout prefix = batch_layout(batch, ModelConfig{}),
               causal = batch_layout(batch, ModelConfig{.attention = AttentionKind::causal});
  using Rows = std::vector<int64_t>;
  EXPECT_EQ(prefix.offsets, (Rows{0, 5, 8}));
  EXPECT_EQ(prefix.prefix_ends, (Rows{4, 6}));
  EXPECT_EQ(causal.prefix_ends, (Rows{0, 5}));
  EXPECT_EQ(prefix.query_offsets, (Rows{0, 2, 5}));
  EXPECT_TRUE(torch::equal(prefix.query_rows, index_tensor({3, 4, 5, 6, 7})));
  EXPECT_TRUE(torch::equal(prefix.positions, index_tensor({0, 1, 2, 3, 4, 0, 1, 2})));
  // <s> and the two tokens of the source, <sep> and the target; plain text is all target.
  const Layout restarted = batch_layout(batch, ModelConfig{.target_positions = TargetPositions::restart});
  EXPECT_TRUE(torch::equal(restarted.positions, index_tensor({0, 1, 2, 0, 1, 0, 1, 2})));
}

}  // namespace calque

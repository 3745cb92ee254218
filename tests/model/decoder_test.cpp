#include "calque/model/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "calque/base/error.h"
#include "calque/model/batch_layout.h"
#include "calque/model/lora.h"
#include "kernels/compare.h"
#include "tiny_model.h"

namespace calque {
namespace {

Batch two_pairs() {
  Batch batch;
  batch.add({{1}, {3}, 2}, std::vector<int32_t>{10, 11, 12}, std::vector<int32_t>{20, 21});
  batch.add({{1}, {3}, 2}, std::vector<int32_t>{13}, std::vector<int32_t>{22, 23, 24, 25});
  return batch;
}

}  // namespace

TEST(Decoder, EveryKindTrainsOnABatch) {
  const Batch batch = two_pairs();
  const auto tokens = index_tensor(batch.tokens), labels = index_tensor(batch.labels);
  for (const ModelConfig& config : every_kind()) {
    Decoder model(config);
    model.initialise(1);
    const Layout layout = batch_layout(batch, config);
    const double before = model.loss(tokens, layout, labels, 0).plain.item<double>();
    EXPECT_NEAR(before / static_cast<double>(batch.labels.size()), std::log(40.0), 0.2);
    for (int step = 0; step < 30; ++step) {
      for (auto& p : model.parameters()) p.mutable_grad() = torch::Tensor();
      model.loss(tokens, layout, labels, 0).smoothed.backward();
      const torch::NoGradGuard guard;
      for (auto& p : model.parameters()) {
        ASSERT_TRUE(p.grad().defined());
        p.sub_(0.02 * p.grad());
      }
    }
    EXPECT_LT(model.loss(tokens, layout, labels, 0).plain.item<double>(), 0.8 * before);
  }
}

TEST(Decoder, APairsLogitsDoNotDependOnItsNeighbours) {
  const ModelConfig config = tiny_config();
  Decoder model(config);
  model.initialise(2);
  const torch::NoGradGuard guard;
  const Batch both = two_pairs();
  Batch second;
  second.add({{1}, {3}, 2}, std::vector<int32_t>{13}, std::vector<int32_t>{22, 23, 24, 25});
  const auto together = model.logits(index_tensor(both.tokens), batch_layout(both, ModelConfig{}));
  const auto alone = model.logits(index_tensor(second.tokens), batch_layout(second, ModelConfig{}));
  EXPECT_EQ(together.size(0), 8);
  EXPECT_LT((together.slice(0, 3) - alone).abs().max().item<double>(), 1e-5);
}

TEST(Decoder, AskingForLossRowsEqualsAskingForAll) {
  Decoder model(tiny_config());
  model.initialise(3);
  const torch::NoGradGuard guard;
  const Batch batch = two_pairs();
  const Layout layout = batch_layout(batch, ModelConfig{});
  const auto tokens = index_tensor(batch.tokens);
  const auto asked = model.logits(tokens, layout), all = model.logits(tokens, query_all_rows(layout));
  EXPECT_LT((asked - all.index_select(0, layout.query_rows)).abs().max().item<double>(), 1e-5);
}

TEST(Decoder, CausalLogitsDoNotChangeWhenTheFutureDoes) {
  ModelConfig config = tiny_config();
  config.attention = AttentionKind::causal;
  Decoder model(config);
  model.initialise(4);
  const torch::NoGradGuard guard;
  Batch a, b;
  a.add({{1}, {3}, 2}, std::vector<int32_t>{10, 11}, std::vector<int32_t>{20, 21, 22});
  b.add({{1}, {3}, 2}, std::vector<int32_t>{10, 11}, std::vector<int32_t>{20, 30, 31});
  const auto first =
      model.logits(index_tensor(a.tokens),
                   query_all_rows(batch_layout(a, ModelConfig{.attention = AttentionKind::causal})));
  const auto second =
      model.logits(index_tensor(b.tokens),
                   query_all_rows(batch_layout(b, ModelConfig{.attention = AttentionKind::causal})));
  EXPECT_TRUE(torch::equal(first.slice(0, 0, 5), second.slice(0, 0, 5)));
  EXPECT_FALSE(torch::equal(first[5], second[5]));
}

TEST(Decoder, InitialisationIsAPureFunctionOfTheSeed) {
  Decoder a(tiny_config()), b(tiny_config()), c(tiny_config());
  a.initialise(5);
  b.initialise(5);
  c.initialise(6);
  EXPECT_TRUE(torch::equal(a.embedding->weight, b.embedding->weight));
  EXPECT_FALSE(torch::equal(a.embedding->weight, c.embedding->weight));
  EXPECT_FALSE(torch::equal(a.blocks[0]->attention->qkv->weight, a.blocks[1]->attention->qkv->weight));
}

TEST(Decoder, WeightsAreDrawnWithTheStandardDeviationsOfGpt2) {
  ModelConfig config = tiny_config(800);
  config.architecture = Architecture::calque;
  config.layers = 8;
  config.hidden_size = 64;
  config.mlp_size = 96;
  config.context_length = 300;
  config.positions = PositionKind::learned;
  config.tied_embeddings = false;
  Decoder model(config);
  model.initialise(1);
  const auto expect = [](const torch::Tensor& weight, double deviation) {
    const double error = 4 * deviation / std::sqrt(static_cast<double>(weight.numel()));
    EXPECT_NEAR(weight.std().item<double>(), deviation, error);
    EXPECT_NEAR(weight.mean().item<double>(), 0, error);
  };
  const double residual = 0.02 / 4;  // √(2 · 8 layers) = 4
  expect(model.embedding->weight, 0.02);
  expect(model.embedding->positions, 0.02);
  expect(model.output, 0.02);
  for (const auto& block : model.blocks) {
    expect(block->attention->qkv->weight, 0.02);
    expect(block->attention->output->weight, residual);
    expect(block->feed_forward->up->weight, 0.02);
    expect(block->feed_forward->down->weight, residual);
  }
  EXPECT_FALSE(torch::equal(model.output, model.embedding->weight));
}

namespace {

int64_t count_recomputed(torch::autograd::Node* node, std::set<torch::autograd::Node*>& seen) {
  if (!node || !seen.insert(node).second) return 0;
  int64_t count = node->name().find("Recomputed") != std::string::npos;
  for (const auto& edge : node->next_edges()) count += count_recomputed(edge.function.get(), seen);
  return count;
}

}  // namespace

TEST(Decoder, GradientCheckpointingComputesTheSameGradientsWithEveryBlockTwice) {
  const Batch batch = two_pairs();
  const auto tokens = index_tensor(batch.tokens), labels = index_tensor(batch.labels);
  for (ModelConfig config : every_kind()) {
    config.dropout = 0.2;
    Decoder model(config);
    model.initialise(1);
    EXPECT_FALSE(model.gradient_checkpointing);
    const Layout layout = batch_layout(batch, config);
    const auto gradients = [&](bool checkpointing) {
      for (auto& p : model.parameters()) p.mutable_grad() = torch::Tensor();
      model.gradient_checkpointing = checkpointing;
      at::manual_seed(3);
      const auto loss = model.loss(tokens, layout, labels, 0.1).smoothed;
      std::set<torch::autograd::Node*> seen;
      EXPECT_EQ(count_recomputed(loss.grad_fn().get(), seen), checkpointing ? config.layers : 0);
      loss.backward();
      std::vector<torch::Tensor> all = {loss.detach()};
      for (const auto& p : model.parameters()) all.push_back(p.grad().clone());
      return all;
    };
    const auto plain = gradients(false), recomputed = gradients(true);
    // The first pass is one without gradients, where LayerNorm and GELU have kernels that round differently.
    const bool same_bits = config.norm != NormKind::layer && config.activation != Activation::gelu;
    for (size_t i = 0; i < plain.size(); ++i) {
      expect_close(recomputed[i], plain[i], 1e-6, std::to_string(i));
      EXPECT_TRUE(!same_bits || torch::equal(recomputed[i], plain[i])) << i;
    }
    const torch::NoGradGuard no_gradients;
    EXPECT_FALSE(model.logits(tokens, layout).grad_fn());
  }
}

TEST(Decoder, BelowAllThatIsTrainedNothingIsRecomputed) {
  const Batch batch = two_pairs();
  const auto model = make_decoder(tiny_config());
  AdapterConfig config;
  config.target_modules = {"qkv"};
  config.first_layer = 1;
  add_adapters(*model, config, 1, WeightPrecision::float32);
  model->gradient_checkpointing = true;
  std::set<torch::autograd::Node*> seen;
  EXPECT_EQ(count_recomputed(
                model->hidden(index_tensor(batch.tokens), batch_layout(batch, ModelConfig{})).grad_fn().get(),
                seen),
            1);
}

TEST(Decoder, Bfloat16ProductsRoundEveryMatrix) {
  const auto model = make_decoder(tiny_config());
  const Batch batch = two_pairs();
  const auto loss = [&] {
    return model
        ->loss(index_tensor(batch.tokens), batch_layout(batch, ModelConfig{}), index_tensor(batch.labels), 0)
        .plain.item<double>();
  };
  const double before = loss();
  model->use_products(torch::kBFloat16);
  for (const auto& block : model->blocks) {
    for (const Block::Matrix& matrix : block->matrices())
      EXPECT_EQ(matrix.linear->products, torch::kBFloat16);
  }
  EXPECT_NE(loss(), before);
  EXPECT_NEAR(loss(), before, 0.01 * before);
  // The output matrix too: without the blocks' matrices it is all that is rounded.
  for (const auto& block : model->blocks) {
    for (const Block::Matrix& matrix : block->matrices()) matrix.linear->products = torch::kFloat32;
  }
  EXPECT_NE(loss(), before);
}

TEST(Decoder, LayersHaveTheRopeTableOfTheirKind) {
  ModelConfig config = tiny_config();
  config.architecture = Architecture::calque;
  config.sliding_window = 4;
  config.layer_types = {LayerType::sliding_attention, LayerType::full_attention};
  config.rope_theta = 50;
  config.rope_local_theta = 7;
  const Decoder model(config);
  for (const auto& [layer, theta] : std::vector<std::pair<int64_t, double>>{{0, 7}, {1, 50}}) {
    ASSERT_NE(model.layer_rope(layer), nullptr);
    const double angle = 3 / std::pow(theta, 0.5);  // position 3, the second of two angles
    EXPECT_NEAR(model.layer_rope(layer)->cosines[3][1].item<double>(), std::cos(angle), 1e-5);
    EXPECT_NEAR(model.layer_rope(layer)->sines[3][1].item<double>(), std::sin(angle), 1e-5);
    EXPECT_EQ(model.layer_rope(layer)->sines.size(0), config.context_length);
  }
  config = tiny_config();
  config.architecture = Architecture::calque;
  config.positions = PositionKind::learned;
  EXPECT_EQ(Decoder(config).layer_rope(0), nullptr);
}

TEST(Decoder, AHookSeesEveryIntermediateTensorByName) {
  Decoder model(tiny_config());
  model.initialise(1);
  const Batch batch = two_pairs();
  std::set<std::string> names;
  const Hook hook = [&](const std::string& name, const torch::Tensor& value) {
    EXPECT_TRUE(value.defined());
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
  };
  const auto hooked = model.logits(index_tensor(batch.tokens), batch_layout(batch, ModelConfig{}), &hook);
  EXPECT_LT((hooked - model.logits(index_tensor(batch.tokens), batch_layout(batch, ModelConfig{})))
                .abs()
                .max()
                .item<double>(),
            1e-5);
  for (const char* name : {"embedding", "blocks.0.attention.q", "blocks.0.attention.weights.1",
                           "blocks.1.feed_forward.inner", "norm", "logits"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Decoder, AHookCanSwitchAHeadOff) {
  const auto model = make_decoder(tiny_config());
  const torch::NoGradGuard guard;
  const Batch batch = two_pairs();
  const Layout layout = batch_layout(batch, ModelConfig{});
  const auto tokens = index_tensor(batch.tokens);
  const auto before = model->logits(tokens, layout);
  const Hook hook = [](const std::string& name, const torch::Tensor& value) {
    if (name == "blocks.1.attention.heads") value.slice(1, 4, 8).zero_();
  };
  const auto without = model->logits(tokens, layout, &hook);
  model->blocks[1]->attention->output->weight.slice(1, 4, 8).zero_();  // the same, by its weights
  EXPECT_LT((without - model->logits(tokens, layout)).abs().max().item<double>(), 1e-6);
  EXPECT_GT((without - before).abs().max().item<double>(), 1e-6);
}

TEST(Decoder, LabelScoresAreTheLogSoftmaxOfTheLogits) {
  const auto model = make_decoder(tiny_config());
  const torch::NoGradGuard guard;
  const Batch batch = two_pairs();
  const Layout layout = batch_layout(batch, ModelConfig{});
  const auto tokens = index_tensor(batch.tokens), labels = index_tensor(batch.labels);
  const auto expected =
      model->logits(tokens, layout).log_softmax(1).gather(1, labels.unsqueeze(1)).squeeze(1);
  EXPECT_LT((model->label_scores(tokens, layout, labels) - expected).abs().max().item<double>(), 1e-5);
}

TEST(Decoder, LabelScoresOfManyRowsComeInOrder) {
  const auto model = make_decoder(tiny_config());
  const torch::NoGradGuard guard;
  Batch batch;
  for (int32_t i = 0; i < 60; ++i)
    batch.add({{1}, {3}, 2}, std::vector<int32_t>{10 + i % 7},
              std::vector<int32_t>(static_cast<size_t>(3 + i % 20), 20 + i % 9));
  ASSERT_GT(batch.labels.size(), 520U);  // more than two chunks
  const Layout layout = batch_layout(batch, ModelConfig{});
  const auto tokens = index_tensor(batch.tokens), labels = index_tensor(batch.labels);
  const auto expected =
      model->logits(tokens, layout).log_softmax(1).gather(1, labels.unsqueeze(1)).squeeze(1);
  const auto found = model->label_scores(tokens, layout, labels);
  ASSERT_EQ(found.sizes(), expected.sizes());
  EXPECT_LT((found - expected).abs().max().item<double>(), 1e-5);
}

TEST(Decoder, DropoutActsOnlyWhileTraining) {
  ModelConfig config = tiny_config();
  config.dropout = 0.5;
  Decoder model(config);
  model.initialise(1);
  const Batch batch = two_pairs();
  const auto run = [&] {
    return model.logits(index_tensor(batch.tokens), batch_layout(batch, ModelConfig{})).detach();
  };
  model.eval();
  EXPECT_TRUE(torch::equal(run(), run()));
  model.train();
  EXPECT_FALSE(torch::equal(run(), run()));
}

TEST(ModelConfig, TheBaseSizeHas7MillionParameters) {
  ModelConfig config;
  config.vocabulary = 8000;
  EXPECT_EQ(Decoder(config).parameter_count(), 7'163'136);
  EXPECT_EQ(block_weights(config), 6 * (4 * 256 * 256 + 3 * 256 * 768));
}

TEST(ModelConfig, ImpossibleOnesAreRefusedByTheirKeys) {
  const auto refusal = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = tiny_config();
    change(config);
    try {
      check_model(config);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal([](ModelConfig& c) {
              c.heads = 5;
              c.kv_heads = 0;
            }),
            "model.hidden_size=16 is not divisible by model.heads=5");
  EXPECT_EQ(refusal([](ModelConfig& c) { c.kv_heads = 3; }),
            "model.heads=4 is not a multiple of model.kv_heads=3");
  EXPECT_THAT(refusal([](ModelConfig& c) { c.head_size = 5; }), testing::HasSubstr("rope"));
  EXPECT_EQ(refusal([](ModelConfig& c) { c.activation = Activation::gelu; }),
            "model.activation=gelu does not fit model.architecture=llama");
  EXPECT_THAT(refusal([](ModelConfig& c) { c.sliding_window = 8; }), testing::HasSubstr("layer_types"));
}

TEST(Decoder, TheEmbeddingShortcutAddsTheEmbeddingsToTheInputOfEachBlock) {
  ModelConfig config = tiny_config();
  config.embedding_shortcut = true;
  const auto model = make_decoder(config);
  Batch batch;
  batch.add({{1}, {3}, 2}, std::vector<int32_t>{10, 11}, std::vector<int32_t>{20});
  const Layout layout = query_all_rows(batch_layout(batch, config));
  const auto tokens = index_tensor(batch.tokens);
  const auto embedded = model->embedding->forward(tokens, {layout});
  auto x = embedded;
  const auto rope = make_rope_table(config.context_length, config.head_size_or_default(), config.rope_theta);
  for (int64_t i = 0; i < config.layers; ++i) {
    ForwardContext context{layout};
    context.layer = i;
    x = model->blocks[static_cast<size_t>(i)]->forward(x + embedded * model->embedding_shortcut[i], context,
                                                       &rope);
  }
  EXPECT_LT((model->hidden(tokens, layout) - model->norm->forward(x)).abs().max().item<double>(), 1e-5);
}

}  // namespace calque

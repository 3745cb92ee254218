#include "calque/model/lora.h"

#include <gtest/gtest.h>

#include "calque/model/batch_layout.h"
#include "kernels/compare.h"
#include "tiny_model.h"

namespace calque {
namespace {

// Also norms and biases that are not what they are initialised to.
std::shared_ptr<Decoder> disturbed_decoder(const ModelConfig& config) {
  auto decoder = make_decoder(config);
  const torch::NoGradGuard no_gradients;
  at::manual_seed(4);
  for (auto& parameter : decoder->parameters()) parameter.add_(torch::randn_like(parameter) * 0.1);
  return decoder;
}

torch::Tensor logits_of(const Decoder& decoder) {
  const torch::NoGradGuard no_gradients;
  Batch batch;
  batch.add({{1}, {3}, 2}, std::vector<int32_t>{10, 11, 12}, std::vector<int32_t>{20, 21});
  return decoder.logits(index_tensor(batch.tokens), batch_layout(batch, decoder.config()));
}

std::string adapted(const Decoder& decoder) {
  std::string names;
  for (size_t layer = 0; layer < decoder.blocks.size(); ++layer) {
    for (const Block::Matrix& matrix : decoder.blocks[layer]->matrices()) {
      if (matrix.linear->adapter) names += matrix.name + std::to_string(layer) + " ";
    }
  }
  return names;
}

AdapterConfig every_matrix() {
  AdapterConfig config;
  config.rank = 3;
  config.scale = 1.5;
  config.target_modules = {"qkv", "output", "up", "down"};
  return config;
}

// Adapters with values of their own: `up` starts at zero.
void fill_adapters(Decoder& decoder, uint64_t seed) {
  const torch::NoGradGuard no_gradients;
  torch::manual_seed(seed);
  for (auto& parameter : decoder.named_parameters()) {
    if (parameter.key().find("adapter_") != std::string::npos) parameter.value().normal_(0, 0.3);
  }
}

}  // namespace

TEST(Lora, AdaptersAreAddedToTheTargetsOfTheUpperLayers) {
  const auto with = [](int64_t first_layer, const std::vector<std::string>& targets) {
    const auto decoder = make_decoder(tiny_config());
    EXPECT_FALSE(has_adapters(*decoder));
    AdapterConfig config;
    config.target_modules = targets;
    config.first_layer = first_layer;
    add_adapters(*decoder, config, 1, WeightPrecision::float32);
    EXPECT_EQ(has_adapters(*decoder), !adapted(*decoder).empty());
    return adapted(*decoder);
  };
  EXPECT_EQ(with(0, {"qkv", "down"}), "qkv0 down0 qkv1 down1 ");
  EXPECT_EQ(with(1, {"output", "up"}), "output1 up1 ");
  EXPECT_EQ(with(2, {"qkv"}), "");
  EXPECT_EQ(with(1, {"down"}), "down1 ");  // the last matrix of the last block
}

TEST(Lora, OnlyAdaptersAreTrainedAndEachIsDrawnByItself) {
  const auto decoder = make_decoder(tiny_config());
  AdapterConfig config;
  EXPECT_EQ(config.rank, 16);
  EXPECT_EQ(config.scale, 2);
  EXPECT_EQ(config.dropout, 0);
  EXPECT_EQ(config.first_layer, 0);
  config.rank = 3;
  config.dropout = 0.1;
  config.target_modules = {"qkv"};
  add_adapters(*decoder, config, 5, WeightPrecision::float32);
  for (const auto& parameter : decoder->named_parameters()) {
    const bool is_adapter = parameter.key().find("adapter") != std::string::npos;
    EXPECT_EQ(parameter.value().requires_grad(), is_adapter) << parameter.key();
  }
  const auto &first = *decoder->blocks[0]->attention->qkv->adapter,
             &second = *decoder->blocks[1]->attention->qkv->adapter;
  EXPECT_EQ(first.down.sizes(), (torch::IntArrayRef{3, 16}));
  EXPECT_EQ(first.scale, 2);
  EXPECT_EQ(first.dropout, 0.1);
  EXPECT_FALSE(torch::equal(first.down, second.down));
  const auto other = make_decoder(tiny_config());
  add_adapters(*other, config, 6, WeightPrecision::float32);
  EXPECT_FALSE(torch::equal(first.down, other->blocks[0]->attention->qkv->adapter->down));
}

TEST(Lora, TheFrozenMatricesAreStoredInTheGivenPrecision) {
  const auto decoder = disturbed_decoder(tiny_config());
  const auto before = logits_of(*decoder);
  const int64_t parameters = decoder->parameter_count();
  AdapterConfig config;
  config.first_layer = 2;  // none has adapters, but every block is frozen
  add_adapters(*decoder, config, 1, WeightPrecision::int8);
  for (const auto& block : decoder->blocks) {
    for (const Block::Matrix& matrix : block->matrices()) EXPECT_FALSE(matrix.linear->weight.defined());
  }
  EXPECT_EQ(decoder->parameter_count(), parameters);
  const auto after = logits_of(*decoder);
  EXPECT_GT(worst_difference(after, before), 0);
  expect_close(after, before, 0.05, "logits");
}

TEST(Lora, MergedItIsAPlainDecoderWithTheSameOutput) {
  for (const ModelConfig& kind : every_kind()) {
    const auto decoder = disturbed_decoder(kind);
    AdapterConfig config;
    config.rank = 2;
    config.target_modules = {"qkv", "output", "up", "down"};
    add_adapters(*decoder, config, 1, WeightPrecision::bfloat16);
    const auto before = logits_of(*decoder);
    {
      const torch::NoGradGuard no_gradients;
      for (const auto& block : decoder->blocks) {
        for (const Block::Matrix& matrix : block->matrices()) matrix.linear->adapter->up.normal_(0, 0.2);
      }
    }
    EXPECT_GT(worst_difference(logits_of(*decoder), before), 0.01);
    const auto merged = merge_adapters(*decoder);
    EXPECT_FALSE(has_adapters(*merged));
    merged->eval();
    expect_close(logits_of(*merged), logits_of(*decoder), 1e-4, "logits");
  }
}

TEST(Lora, AdaptersOnASharedPackedBaseGiveTheLogitsOfMergedOnes) {
  for (const bool tied : {true, false}) {
    ModelConfig config = tiny_config();
    config.tied_embeddings = tied;
    const auto base = make_decoder(config);
    base->pack(WeightPrecision::float32);
    std::vector<torch::Tensor> seen;
    for (const uint64_t seed : {1, 2}) {
      const auto reference = make_decoder(config);
      add_adapters(*reference, every_matrix(), 0, WeightPrecision::float32);
      fill_adapters(*reference, seed);
      const auto merged = merge_adapters(*reference);
      merged->eval();

      const auto adapted = std::make_shared<Decoder>(config);
      adapted->eval();
      adapted->share_packed(*base);
      add_adapters(*adapted, every_matrix(), 0, WeightPrecision::float32);
      fill_adapters(*adapted, seed);
      pack_adapters(*adapted);

      EXPECT_TRUE(torch::allclose(logits_of(*adapted), logits_of(*merged), 1e-4, 1e-5));
      EXPECT_FALSE(torch::allclose(logits_of(*adapted), logits_of(*base), 1e-2, 1e-2));
      EXPECT_EQ(adapted->parameter_count(), base->parameter_count());
      EXPECT_EQ(adapted->packed_precision(), WeightPrecision::float32);
      EXPECT_FALSE(has_adapters(*adapted));
      EXPECT_EQ(adapted->norm->weight.data_ptr(), base->norm->weight.data_ptr());  // one copy serves both
      seen.push_back(logits_of(*adapted));
    }
    EXPECT_FALSE(torch::allclose(seen[0], seen[1], 1e-2, 1e-2));
  }
}

}  // namespace calque

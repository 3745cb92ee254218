#include "calque/model/lora.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "calque/data/batch.h"
#include "calque/model/batch_layout.h"
#include "tiny_model.h"

namespace calque {
namespace {

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

torch::Tensor logits_of(const Decoder& decoder) {
  const torch::NoGradGuard no_gradients;
  SequenceFormat format;
  Batch batch;
  const std::vector<int32_t> source = {5, 6, 7}, target = {8, 9};
  batch.add(format, source, target);
  return decoder.logits(index_tensor(batch.tokens), batch_layout(batch, decoder.config().attention));
}

}  // namespace

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

TEST(Lora, LayersBelowTheFirstHaveNoAdapters) {
  const auto decoder = make_decoder(tiny_config());
  AdapterConfig config = every_matrix();
  config.first_layer = 1;
  config.target_modules = {"up"};
  add_adapters(*decoder, config, 0, WeightPrecision::float32);
  EXPECT_FALSE(decoder->blocks[0]->feed_forward->up->adapter);
  EXPECT_TRUE(decoder->blocks[1]->feed_forward->up->adapter);
  EXPECT_FALSE(decoder->blocks[1]->feed_forward->down->adapter);
  EXPECT_TRUE(has_adapters(*decoder));
}

}  // namespace calque

// Whole models with the portable kernels, on the CPU and on another device: the same results as with the fast
// ones.
#include <gtest/gtest.h>

#include "calque/kernels/portable.h"
#include "calque/model/batch_layout.h"
#include "fake_device.h"
#include "kernels/compare.h"
#include "tiny_model.h"

namespace calque {
namespace {

Batch ragged_batch() {
  Batch batch;
  const SequenceFormat format{{1}, {3}, 2};
  for (int32_t pair = 0; pair < 12; ++pair) {
    std::vector<int32_t> source, target;
    for (int32_t i = 0; i <= pair * 5 % 23; ++i) source.push_back(4 + (pair * 7 + i) % 36);
    for (int32_t i = 0; i < pair * 3 % 17; ++i) target.push_back(4 + (pair + i * 11) % 36);
    batch.add(format, source, target);
  }
  return batch;
}

CrossEntropyLoss loss_of(const Decoder& decoder, const Batch& batch) {
  const auto device = decoder.device();
  return decoder.loss(index_tensor(batch.tokens, device), batch_layout(batch, decoder.config(), device),
                      index_tensor(batch.labels, device), 0.1);
}

// A prompt of five tokens, then one token more of it and of another sequence.
struct CachedPasses {
  std::vector<torch::Tensor> layers;
  std::vector<int32_t> slots = {4, 0, 2, 1, 6}, next_slots = {5, 3}, visible = {4, 0, 2, 1, 6, 5, 4, 3};
  std::vector<int64_t> offsets = {0, 5}, next_offsets = {0, 6, 8}, prefix = {5}, no_prefix = {0, 0};

  explicit CachedPasses(const Decoder& decoder) {
    const ModelConfig& config = decoder.config();
    for (int64_t i = 0; i < config.layers; ++i)
      layers.push_back(torch::zeros({8, 2 * config.kv_head_count() * config.head_size_or_default()},
                                    torch::device(decoder.device())));
    if (!config.is_prefix()) prefix = {0};
  }

  torch::Tensor run(const Decoder& decoder) {
    const torch::NoGradGuard no_gradients;
    const auto device = decoder.device();
    Layout prompt;
    prompt.offsets = {0, 5};
    prompt.prefix_ends = {0};
    prompt.query_offsets = {0, 1};
    prompt.positions = index_tensor({0, 1, 2, 3, 4}, device);
    prompt.query_rows = index_tensor({4}, device);
    const auto first = decoder.logits(index_tensor({1, 7, 8, 9, 3}, device), prompt,
                                      {{slots, slots, offsets, prefix}, layers});
    Layout next;
    next.offsets = next.query_offsets = {0, 1, 2};
    next.prefix_ends = {0, 0};
    next.positions = index_tensor({5, 1}, device);
    next.query_rows = index_tensor({0, 1}, device);
    return torch::cat({first, decoder.logits(index_tensor({11, 12}, device), next,
                                             {{next_slots, visible, next_offsets, no_prefix}, layers})});
  }
};

}  // namespace

TEST(PortableModel, EveryKindHasTheLossGradientsAndCachedLogitsOfTheFastKernels) {
  const Batch batch = ragged_batch();
  for (const ModelConfig& config : every_kind()) {
    const auto decoder = make_decoder(config);
    const auto results = [&] {
      decoder->zero_grad();
      const auto loss = loss_of(*decoder, batch);
      loss.smoothed.backward();
      std::vector<torch::Tensor> all = {loss.smoothed.detach(), loss.plain,
                                        CachedPasses(*decoder).run(*decoder)};
      for (const auto& parameter : decoder->parameters()) all.push_back(parameter.grad().clone());
      return all;
    };
    const auto expected = results();
    const PortableKernels portable;
    const auto found = results();
    for (size_t i = 0; i < found.size(); ++i) expect_close(found[i], expected[i], 1e-5, std::to_string(i));
  }
}

TEST(PortableModel, GradientCheckpointingChangesNothing) {
  const PortableKernels portable;
  const auto decoder = make_decoder(tiny_config());
  const auto gradient = [&] {
    decoder->zero_grad();
    loss_of(*decoder, ragged_batch()).smoothed.backward();
    return decoder->blocks[0]->attention->qkv->weight.grad().clone();
  };
  const auto expected = gradient();
  decoder->gradient_checkpointing = true;
  EXPECT_TRUE(torch::equal(gradient(), expected));
}

TEST(PortableModel, EveryKindRunsOnAnotherDevice) {
  const FakeDevice fake;
  const Batch batch = ragged_batch();
  for (const ModelConfig& config : every_kind()) {
    const auto here = make_decoder(config), there = make_decoder(config);
    there->to(fake.device);
    const auto loss = loss_of(*here, batch).smoothed, found = loss_of(*there, batch).smoothed;
    EXPECT_EQ(found.device(), fake.device);
    loss.backward();
    found.backward();
    expect_close(found.detach().cpu(), loss.detach(), 1e-5, "loss");
    const auto expected = here->parameters(), parameters = there->parameters();
    for (size_t i = 0; i < parameters.size(); ++i)
      expect_close(parameters[i].grad().cpu(), expected[i].grad(), 1e-5, "gradient");
    here->store_weights(torch::kBFloat16);
    there->store_weights(torch::kBFloat16);
    // LibTorch rounds its products to bfloat16, by up to 2⁻⁹ of their size; the fast ones stay in float32.
    expect_close(CachedPasses(*there).run(*there).cpu(), CachedPasses(*here).run(*here), 2e-3, "logits");
  }
}

TEST(PortableModel, WeightsStoredInBfloat16GiveNearlyTheSameLogits) {
  for (const bool tied : {true, false}) {
    ModelConfig config = tiny_config();
    config.tied_embeddings = tied;
    const auto decoder = make_decoder(config);
    EXPECT_EQ(decoder->weight_precision(), WeightPrecision::float32);
    const auto expected = CachedPasses(*decoder).run(*decoder);
    decoder->store_weights(torch::kBFloat16);
    EXPECT_EQ(decoder->weight_precision(), WeightPrecision::bfloat16);
    EXPECT_EQ(decoder->blocks[0]->attention->qkv->weight.scalar_type(), torch::kBFloat16);
    const auto found = CachedPasses(*decoder).run(*decoder);
    EXPECT_EQ(found.scalar_type(), torch::kFloat32);
    expect_close(found, expected, 0.02, "logits");
    EXPECT_FALSE(torch::equal(found, expected));
  }
}

}  // namespace calque

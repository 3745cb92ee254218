#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tiny_model.h"

namespace calque {
namespace {

constexpr int64_t capacity = 128;

std::shared_ptr<Decoder> random_decoder(const ModelConfig& config) {
  auto decoder = std::make_shared<Decoder>(config);
  decoder->initialise(9);
  const torch::NoGradGuard no_gradients;
  at::manual_seed(8);
  for (auto& parameter : decoder->parameters()) parameter.add_(torch::randn_like(parameter) * 0.15);
  decoder->eval();
  return decoder;
}

// Sequences under translation: a prompt is read in one pass, then a row at a time follows it.
class Sequences {
 public:
  Sequences(const ModelConfig& config, std::vector<int64_t> prompts)
      : prefix_(config.attention == AttentionKind::prefix), left_(std::move(prompts)), slots_(left_.size()) {
    const int64_t width = 2 * config.kv_head_count() * config.head_size_or_default();
    for (int64_t i = 0; i < config.layers; ++i) caches_.push_back(torch::full({capacity, width}, NAN));
  }

  // The next pass of the sequences that are named.
  torch::Tensor step(const Decoder& model, const std::vector<size_t>& named) {
    Layout layout;
    layout.offsets = layout.query_offsets = {0};
    std::vector<int32_t> slots, visible;
    std::vector<int64_t> visible_offsets = {0}, prefix_lengths;
    std::vector<int64_t> tokens, positions, query_rows;
    for (const size_t i : named) {
      const int64_t rows = std::exchange(left_[i], 1);
      prefix_lengths.push_back(slots_[i].empty() && prefix_ ? rows : 0);
      for (int64_t j = 0; j < rows; ++j) {
        positions.push_back(static_cast<int64_t>(slots_[i].size()));
        tokens.push_back(static_cast<int64_t>((i * 17 + slots_[i].size() * 7) % 40));
        slots_[i].push_back(next_slot_);
        slots.push_back(next_slot_);
        next_slot_ = static_cast<int32_t>((next_slot_ + 37) % capacity);  // anywhere
      }
      visible.insert(visible.end(), slots_[i].begin(), slots_[i].end());
      visible_offsets.push_back(static_cast<int64_t>(visible.size()));
      layout.offsets.push_back(static_cast<int64_t>(tokens.size()));
      layout.prefix_ends.push_back(0);
      query_rows.push_back(static_cast<int64_t>(tokens.size()) - 1);
      layout.query_offsets.push_back(static_cast<int64_t>(query_rows.size()));
    }
    layout.positions = index_tensor(positions);
    layout.query_rows = index_tensor(query_rows);
    const torch::NoGradGuard no_gradients;
    return model.logits(index_tensor(tokens), layout,
                        {{slots, visible, visible_offsets, prefix_lengths}, caches_});
  }

 private:
  bool prefix_;
  std::vector<int64_t> left_;
  std::vector<std::vector<int32_t>> slots_;
  std::vector<torch::Tensor> caches_;
  int32_t next_slot_ = 5;
};

double difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

}  // namespace

TEST(Packing, ChangesNothingForEveryKindOfModel) {
  const std::vector<std::vector<size_t>> passes = {{0, 1}, {1, 2, 0}, {0}, {3, 1, 2, 0}, {1, 3}, {2}};
  for (const ModelConfig& config : every_kind()) {
    const auto decoder = random_decoder(config);
    const auto packed = packed_copy(*decoder, WeightPrecision::float32);
    Sequences one(config, {5, 1, 9, 7}), other(config, {5, 1, 9, 7});
    for (const auto& named : passes) {
      const auto expected = one.step(*decoder, named);
      EXPECT_GT(expected.std().item<double>(), 0.1);
      EXPECT_LT(difference(other.step(*packed, named), expected),
                2e-5 * (1 + expected.abs().max().item<double>()));
    }
  }
}

TEST(Packing, InLowerPrecisionTheLogitsStayNear) {
  const auto decoder = random_decoder(tiny_config());
  for (const auto& [precision, near] :
       {std::pair{WeightPrecision::bfloat16, 0.05}, {WeightPrecision::int8, 0.05}}) {
    const auto packed = packed_copy(*decoder, precision);
    Sequences one(tiny_config(), {5, 8}), other(tiny_config(), {5, 8});
    for (int i = 0; i < 4; ++i) {
      const auto expected = one.step(*decoder, {0, 1});
      const double away = difference(other.step(*packed, {0, 1}), expected);
      EXPECT_LT(away, near * expected.abs().max().item<double>());
      EXPECT_GT(away, 0);
    }
  }
}

TEST(Packing, ASequenceIsTheSameToTheBitInAnyCompanyAndWithAnyThreads) {
  const ModelConfig config = tiny_config();
  const auto decoder = random_decoder(config);
  const int threads = at::get_num_threads();
  for (const WeightPrecision precision :
       {WeightPrecision::float32, WeightPrecision::bfloat16, WeightPrecision::int8}) {
    const auto packed = packed_copy(*decoder, precision);
    const std::vector<int64_t> prompts = {5, 11, 2, 7, 6, 3};
    Sequences alone(config, prompts), together(config, prompts);
    for (int i = 0; i < 3; ++i) {
      at::set_num_threads(1);
      const auto one = alone.step(*packed, {4});
      at::set_num_threads(3);
      EXPECT_TRUE(torch::equal(together.step(*packed, {0, 1, 2, 3, 4, 5}).select(0, 4), one.select(0, 0)));
    }
  }
  at::set_num_threads(threads);
}

TEST(Packing, MergesAdapters) {
  const auto decoder = random_decoder(tiny_config());
  decoder->blocks[1]->attention->qkv->add_adapter(2, 0.5, 0, 3);
  decoder->blocks[0]->feed_forward->down->add_adapter(2, 0.5, 0, 4);
  {
    const torch::NoGradGuard no_gradients;
    decoder->blocks[1]->attention->qkv->adapter->up.fill_(0.3);
    decoder->blocks[0]->feed_forward->down->adapter->up.fill_(-0.2);
  }
  const auto packed = packed_copy(*decoder, WeightPrecision::float32);
  Sequences one(tiny_config(), {6}), other(tiny_config(), {6});
  EXPECT_LT(difference(other.step(*packed, {0}), one.step(*decoder, {0})), 1e-4);
}

TEST(Packing, ParametersAreCountedOnceInEveryPrecision) {
  for (const ModelConfig& config : every_kind()) {
    for (const WeightPrecision precision :
         {WeightPrecision::float32, WeightPrecision::bfloat16, WeightPrecision::int8}) {
      const auto decoder = random_decoder(config);
      const int64_t before = decoder->parameter_count();
      EXPECT_EQ(decoder->packed_precision(), std::nullopt);
      const auto packed = packed_copy(*decoder, precision);
      EXPECT_EQ(packed->parameter_count(), before);
      EXPECT_EQ(packed->packed_precision(), precision);
      EXPECT_FALSE(packed->is_training());
      EXPECT_EQ(decoder->parameter_count(), before);
    }
  }
}

// Enough rows for several shares per thread, and pairs of very different lengths.
TEST(Packing, ManyPairsAreSharedOutAmongTheThreadsAndComeBackInOrder) {
  ModelConfig config = tiny_config();
  const auto decoder = random_decoder(config), packed = packed_copy(*decoder, WeightPrecision::float32);
  std::vector<int64_t> prompts;
  std::vector<size_t> named;
  for (size_t i = 0; i < 12; ++i) {
    prompts.push_back(static_cast<int64_t>(1 + i * 5 % 17));
    named.push_back(i);
  }
  const int threads = at::get_num_threads();
  for (const int count : {1, 2, 4}) {
    at::set_num_threads(count);
    Sequences one(config, prompts), other(config, prompts);
    for (int pass = 0; pass < 2; ++pass)
      EXPECT_LT(difference(other.step(*packed, named), one.step(*decoder, named)), 1e-3);
  }
  at::set_num_threads(threads);
}

TEST(Packing, LeavesOneCopyOfTheWeights) {
  for (const ModelConfig& config : every_kind()) {
    const auto decoder = random_decoder(config);
    const int64_t before = decoder->parameter_count();
    decoder->pack(WeightPrecision::float32);
    EXPECT_EQ(decoder->parameter_count(), before);
    for (const auto& parameter : decoder->named_parameters()) {  // positions are the only table that is left
      EXPECT_TRUE(parameter.value().dim() == 1 || parameter.key() == "embedding.positions" ||
                  (!config.tied_embeddings && parameter.key() == "embedding.weight"))
          << parameter.key();
    }
  }
}

}  // namespace calque

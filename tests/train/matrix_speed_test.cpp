#include "calque/train/matrix_speed.h"

#include <gtest/gtest.h>

#include <chrono>

#include "calque/model/lora.h"
#include "calque/train/part_times.h"
#include "tiny_model.h"

namespace calque {
namespace {

// Weights of the matrices of a block of tiny_config(): queries 16 · 16, keys and values 2 · 8 · 16, output
// 16 · 16, gate and up 2 · 24 · 16, down 24 · 16.
constexpr double tiny_block = 256 + 256 + 256 + 768 + 384;
constexpr double tiny_output = 40 * 16;

}  // namespace

TEST(MatrixSpeed, ItsMeanIsAtMostItsBestAndNobodyElseCountsItsTime) {
  ModelConfig config = tiny_config();
  config.hidden_size = 64;
  const PartTimes parts;
  MatrixSpeed speed(config, 256);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) speed.sample();
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GT(speed.mean(), 0);
  EXPECT_LE(speed.mean(), speed.best() * (1 + 1e-9));
  EXPECT_GT(speed.seconds(), 0);
  EXPECT_LE(speed.seconds(), elapsed);
  // Three samples of two timed products each fit into the time that they took.
  EXPECT_GE(speed.mean() * speed.seconds(), 6 * speed.operations() * (1 - 1e-9));
  const auto seconds = parts.seconds();
  const auto products = seconds.find("products");
  EXPECT_EQ(products == seconds.end() ? 0 : products->second, 0);
}

TEST(MatrixSpeed, TheBestIsFasterThanAnySampleAndSlowerThanNoTimeAtAll) {
  MatrixSpeed speed(tiny_config(), 128);
  speed.sample();
  const double first = speed.best();
  speed.sample();
  EXPECT_GE(speed.best(), first);
  EXPECT_TRUE(std::isfinite(speed.best()));
  EXPECT_GE(measure_matrix_speed(tiny_config(), 128, at::kBFloat16), 0);
}

TEST(MatrixSpeed, MultipliesAllMatricesOfABlockByEveryRow) {
  EXPECT_EQ(MatrixSpeed(tiny_config(), 10).operations(), 2 * 10 * tiny_block);
  ModelConfig plain = tiny_config();
  plain.activation = Activation::gelu;  // without a gate
  EXPECT_EQ(MatrixSpeed(plain, 10).operations(), 2 * 10 * (tiny_block - 24 * 16));
}

TEST(TrainingFlops, AreSixPerWeightAndTheOutputCountsWhereThereIsALoss) {
  const auto decoder = make_decoder(tiny_config());
  EXPECT_DOUBLE_EQ(training_flops_per_token(*decoder, 0), 2 * 6 * tiny_block);
  EXPECT_DOUBLE_EQ(training_flops_per_token(*decoder, 0.25), 2 * 6 * tiny_block + 0.25 * 6 * tiny_output);
}

TEST(TrainingFlops, FrozenWeightsHaveNoGradientOfTheirOwnNorOfTheirInputWhereNothingBelowIsTrained) {
  const auto decoder = make_decoder(tiny_config());
  decoder->embedding->weight.set_requires_grad(false);
  // The blocks are trained: their own norms are below their matrices.
  EXPECT_DOUBLE_EQ(training_flops_per_token(*decoder, 1), 2 * 6 * tiny_block + 4 * tiny_output);
  for (auto& parameter : decoder->blocks[0]->parameters()) parameter.set_requires_grad(false);
  EXPECT_DOUBLE_EQ(training_flops_per_token(*decoder, 1), (2 + 6) * tiny_block + 4 * tiny_output);
}

TEST(TrainingFlops, AdaptersCountBesideTheirFrozenBase) {
  const auto decoder = make_decoder(tiny_config());
  add_adapters(*decoder, {3, 1, 0, {"down"}, 1}, 1, WeightPrecision::float32);
  EXPECT_DOUBLE_EQ(training_flops_per_token(*decoder, 1),
                   (2 + 4) * tiny_block + 6 * 3 * (24 + 16) + 4 * tiny_output);
}

}  // namespace calque

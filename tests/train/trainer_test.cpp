#include "calque/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "calque/train/run_setup.h"
#include "tiny_model.h"

namespace calque {
namespace {

Batch random_batch(uint32_t seed, int pairs = 12) {
  std::mt19937 random(seed);
  Batch batch;
  for (int i = 0; i < pairs; ++i) {
    std::vector<int32_t> source(1 + random() % 8), target(1 + random() % 8);
    for (auto* side : {&source, &target}) {
      for (int32_t& token : *side) token = static_cast<int32_t>(4 + random() % 46);
    }
    batch.add({{1}, {3}, 2}, source, target);
  }
  return batch;
}

Trainer make_trainer(const TrainConfig& config, double dropout = 0) {
  ModelConfig model = tiny_config(50);
  model.dropout = dropout;
  auto decoder = std::make_shared<Decoder>(model);
  decoder->initialise(1);
  return {decoder, config, 7, torch::kCPU};
}

double worst_weight_difference(const Trainer& a, const Trainer& b) {
  double worst = 0;
  const auto left = a.decoder().parameters(), right = b.decoder().parameters();
  for (size_t i = 0; i < left.size(); ++i)
    worst = std::max(worst, (left[i] - right[i]).abs().max().item<double>());
  return worst;
}

}  // namespace

TEST(Trainer, LearnsNearlyTheSameWithProductsInBfloat16) {
  std::vector<double> losses;
  for (const bool half : {false, true}) {
    auto decoder = std::make_shared<Decoder>(tiny_config(50));
    decoder->initialise(1);
    if (half) decoder->use_bfloat16_products();
    Trainer trainer(decoder, TrainConfig(), 7, torch::kCPU);
    for (uint32_t step = 0; step < 60; ++step)
      losses.push_back(trainer.step(random_batch(step % 3), 5e-3).loss);
    EXPECT_EQ(decoder->embedding->weight.scalar_type(), torch::kFloat32);
  }
  EXPECT_NE(losses[0], losses[60]);
  EXPECT_NEAR(losses[60], losses[0], 0.01);
  EXPECT_LT(losses[119], 0.7 * losses[60]);
  EXPECT_NEAR(losses[119], losses[59], 0.1 * losses[59]);
}

TEST(Trainer, LearnsABatchByHeartWithEitherOptimizer) {
  for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::muon}) {
    TrainConfig config;
    config.optimizer = optimizer;
    Trainer trainer = make_trainer(config);
    const Batch batch = random_batch(1);
    const double first = trainer.step(batch, 5e-3).loss;
    EXPECT_NEAR(first, std::log(50.0), 0.3);
    double last = first;
    for (int i = 0; i < 150; ++i) last = trainer.step(batch, 5e-3).loss;
    EXPECT_LT(last, 0.7);
  }
}

TEST(Trainer, AccumulationIsNormalisedByTargetTokens) {
  TrainConfig whole, parts;
  parts.micro_batch_tokens = 40;
  Trainer a = make_trainer(whole), b = make_trainer(parts);
  for (uint32_t step = 0; step < 3; ++step) {
    const Batch batch = random_batch(step);
    ASSERT_GT(split_batch(batch, 40).size(), 3u);
    EXPECT_NEAR(a.step(batch, 1e-3).loss, b.step(batch, 1e-3).loss, 1e-5);
  }
  EXPECT_LT(worst_weight_difference(a, b), 2e-5);
}

TEST(Trainer, ANonFiniteGradientLeavesTheWeightsAlone) {
  TrainConfig config;
  Trainer trainer = make_trainer(config), untouched = make_trainer(config);
  {
    const torch::NoGradGuard guard;
    trainer.decoder().norm->weight[0] = std::nan("");
    untouched.decoder().norm->weight[0] = std::nan("");
  }
  const StepResult result = trainer.step(random_batch(1), 1e-3);
  EXPECT_TRUE(result.skipped);
  EXPECT_EQ(trainer.state().skipped_steps, 1);
  EXPECT_EQ(trainer.state().consecutive_nonfinite_steps, 1);
  EXPECT_TRUE(torch::equal(trainer.decoder().embedding->weight, untouched.decoder().embedding->weight));
}

TEST(Trainer, ClippingBoundsTheGradient) {
  TrainConfig config;
  config.max_grad_norm = 1e-3;
  config.optimizer = OptimizerKind::adamw;
  Trainer trainer = make_trainer(config);
  EXPECT_GT(trainer.step(random_batch(1), 0).gradient_norm, 1e-3);
  double squares = 0;
  for (const auto& p : trainer.decoder().parameters()) squares += p.grad().square().sum().item<double>();
  EXPECT_NEAR(std::sqrt(squares), 1e-3, 1e-5);
}

TEST(Trainer, DropoutIsAPureFunctionOfSeedAndStep) {
  TrainConfig config;
  Trainer a = make_trainer(config, 0.3), b = make_trainer(config, 0.3);
  a.step(random_batch(1), 1e-3);
  at::rand({100});  // whatever else is drawn in between
  b.step(random_batch(1), 1e-3);
  EXPECT_EQ(worst_weight_difference(a, b), 0);
}

TEST(Trainer, TheAverageOfTheWeightsIsWhatIsValidatedAndSaved) {
  TrainConfig config;
  config.ema_decay = 0.9;
  Trainer trainer = make_trainer(config);
  for (uint32_t i = 0; i < 5; ++i) trainer.step(random_batch(i), 1e-2);
  const auto raw = trainer.decoder().embedding->weight.detach().clone();
  trainer.validation_loss({random_batch(9)});
  EXPECT_TRUE(torch::equal(raw, trainer.decoder().embedding->weight));  // training goes on with the raw ones
  const CheckpointContent content = trainer.snapshot(
      Tokenizer::load(std::string(CALQUE_SOURCE_FOLDER) + "/tests/golden/tokenizer/bpe.model"));
  for (const auto& [name, tensor] : content.weights) {
    if (name == "model.embed_tokens.weight") {
      EXPECT_FALSE(torch::equal(tensor, raw));
    }
  }
}

TEST(Optimizer, AdamWMatchesTheTextbook) {
  ModelConfig model = tiny_config(50);
  auto decoder = std::make_shared<Decoder>(model);
  decoder->initialise(3);
  TrainConfig config;
  config.weight_decay = 0.1;
  Optimizer optimizer(trained_parameters(*decoder, {}), config);
  auto weight = decoder->embedding->weight;
  auto expected = weight.detach().to(torch::kFloat64).clone(), mean = torch::zeros_like(expected),
       square = torch::zeros_like(expected);
  for (int t = 1; t <= 5; ++t) {
    for (auto& p : decoder->parameters()) p.mutable_grad() = torch::full_like(p, 0.1 * t);
    optimizer.step(0.01);
    const auto g = torch::full_like(expected, 0.1 * t);
    expected = expected * (1 - 0.01 * 0.1);
    mean = 0.9 * mean + 0.1 * g;
    square = 0.98 * square + 0.02 * g * g;
    expected = expected -
               0.01 * (mean / (1 - std::pow(0.9, t))) / ((square / (1 - std::pow(0.98, t))).sqrt() + 1e-8);
  }
  EXPECT_LT((weight - expected).abs().max().item<double>(), 1e-6);
}

TEST(Optimizer, MuonsUpdateIsNearlyOrthogonal) {
  at::manual_seed(1);
  for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{{16, 16}, {16, 48}}) {
    const auto matrices = torch::randn({3, rows, columns});
    const auto orthogonal = orthogonalise(matrices);
    // Each by itself, not by its neighbours.
    EXPECT_LT((orthogonal[1] - orthogonalise(matrices.slice(0, 1, 2))[0]).abs().max().item<double>(), 1e-4);
    const auto singular = std::get<1>(at::linalg_svd(orthogonal, false));
    EXPECT_GT(singular.min().item<double>(), 0.5);
    EXPECT_LT(singular.max().item<double>(), 1.3);
  }
}

}  // namespace calque

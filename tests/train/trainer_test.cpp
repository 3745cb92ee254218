#include "calque/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "calque/checkpoint/hf_config.h"
#include "calque/kernels/threads.h"
#include "calque/train/run_setup.h"
#include "temporary_folder.h"
#include "tiny_model.h"
#include "train/evaluation_loss.h"
#include "train/random_batch.h"

namespace calque {
namespace {

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
    if (half) decoder->use_products(torch::kBFloat16);
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

// Tensors large enough that LibTorch's own operations divide them among threads too.
TEST(Trainer, WeightsHaveTheSameBitsForAnyNumberOfThreads) {
  ModelConfig model = tiny_config(4000);
  model.hidden_size = 64;
  model.mlp_size = 160;
  model.embedding_shortcut = true;
  TrainConfig config;
  config.max_grad_norm = 0.1;  // so that the norm, a sum over all gradients, matters
  const int before = num_threads();
  struct Case {
    OptimizerKind optimizer;
    Precision precision;
    Activation activation;
  };
  for (const auto& [optimizer, precision, activation] :
       {Case{OptimizerKind::adamw, Precision::float32, Activation::gelu},
        Case{OptimizerKind::muon, Precision::float32, Activation::swiglu},
        Case{OptimizerKind::muon, Precision::bfloat16, Activation::geglu}}) {
    config.optimizer = optimizer;
    config.precision = precision;
    model.architecture = Architecture::calque;
    model.activation = activation;
    std::vector<std::unique_ptr<Trainer>> trainers;
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      auto decoder = make_decoder(model);
      if (precision == Precision::bfloat16) decoder->use_products(torch::kBFloat16);
      trainers.push_back(std::make_unique<Trainer>(decoder, config, 7, torch::kCPU));
      for (uint32_t step = 0; step < 3; ++step) {
        const StepResult result = trainers.back()->step(random_batch(step, 500), 5e-3);
        EXPECT_GT(result.gradient_norm, 0.1);
      }
      EXPECT_EQ(worst_weight_difference(*trainers.front(), *trainers.back()), 0) << threads;
    }
  }
  set_num_threads(before);
}

TEST(LossScale, HalvesAfterAnOverflowAndDoublesAfterManyGoodSteps) {
  LossScale scale;
  EXPECT_EQ(scale.value, 65536);
  scale.update(true);
  EXPECT_EQ(scale.value, 32768);
  for (int i = 0; i < 1999; ++i) scale.update(false);
  EXPECT_EQ(scale.value, 32768);
  scale.update(false);
  EXPECT_EQ(scale.value, 65536);
  for (int i = 0; i < 1999; ++i) scale.update(false);
  scale.update(true);  // good steps are counted from the last change on
  scale.update(false);
  EXPECT_EQ(scale.value, 32768);
}

TEST(Trainer, LearnsNearlyTheSameWithProductsInFloat16AndAScaledLoss) {
  std::vector<double> losses, norms;
  for (const Precision precision : {Precision::float32, Precision::float16}) {
    TrainConfig config;
    config.precision = precision;
    auto decoder = make_decoder(tiny_config(50));
    if (precision == Precision::float16) decoder->use_products(torch::kFloat16);
    Trainer trainer(decoder, config, 7, torch::kCPU);
    EXPECT_EQ(trainer.state().loss_scale.has_value(), precision == Precision::float16);
    for (uint32_t step = 0; step < 30; ++step) {
      const StepResult result = trainer.step(random_batch(step % 3), 5e-3);
      losses.push_back(result.loss);
      norms.push_back(result.gradient_norm);
      EXPECT_FALSE(result.skipped);
    }
  }
  EXPECT_NE(losses[0], losses[30]);
  EXPECT_NEAR(losses[59], losses[29], 0.02 * losses[29]);
  EXPECT_NEAR(norms[30], norms[0], 0.01 * norms[0]);  // the scale is divided out again
}

TEST(Trainer, AnOverflowInFloat16SkipsTheStepAndHalvesTheScale) {
  TrainConfig config;
  config.precision = Precision::float16;
  auto decoder = make_decoder(tiny_config(50));
  {
    const torch::NoGradGuard no_gradients;
    decoder->norm->weight.mul_(300);  // gradients that float16 cannot hold once they are scaled
  }
  decoder->use_products(torch::kFloat16);
  Trainer trainer(decoder, config, 7, torch::kCPU);
  const Batch batch = random_batch(1);
  const auto before = decoder->norm->weight.detach().clone();
  EXPECT_TRUE(trainer.step(batch, 1e-3).skipped);
  EXPECT_EQ(trainer.state().loss_scale->value, 32768);
  EXPECT_EQ(trainer.state().skipped_steps, 1);
  EXPECT_TRUE(torch::equal(before, decoder->norm->weight));
  int64_t skipped = 1;
  while (skipped < 40 && trainer.step(batch, 1e-3).skipped) ++skipped;
  EXPECT_LT(skipped, 40);  // in the end the scale is small enough
  EXPECT_EQ(trainer.state().loss_scale->value, 65536 / std::pow(2, skipped));
  const TemporaryFolder folder;
  write_checkpoint(folder / "saved", trainer.snapshot(Tokenizer::load(std::string(CALQUE_SOURCE_FOLDER) +
                                                                      "/tests/golden/tokenizer/bpe.model")));
  Trainer resumed(make_decoder(tiny_config(50)), config, 7, torch::kCPU);
  const Checkpoint saved(folder / "saved");
  resumed.restore(&saved);
  EXPECT_EQ(resumed.state().loss_scale->value, trainer.state().loss_scale->value);
  EXPECT_EQ(resumed.state().loss_scale->good_steps, 1);
  Trainer other(make_decoder(tiny_config(50)), {}, 7, torch::kCPU);  // continues with another precision
  other.restore(&saved);
  EXPECT_FALSE(other.state().loss_scale);
  EXPECT_FALSE(torch::equal(before, decoder->norm->weight));
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
  trainer.with_evaluation_model(
      [&](const Decoder& shown) { EXPECT_FALSE(torch::equal(raw, shown.embedding->weight)); });
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

TEST(Trainer, CountsStepsTokensAndThePlaceInTheEpoch) {
  Trainer trainer = make_trainer({});
  EXPECT_EQ(trainer.state().to_json(), TrainerState().to_json());
  Batch batch = random_batch(1);
  batch.place = {2, 6, 9};
  const StepResult result = trainer.step(batch, 1e-3);
  EXPECT_FALSE(result.skipped);
  EXPECT_GT(result.gradient_norm, 0);
  trainer.step(batch, 1e-3);
  const TrainerState& state = trainer.state();
  EXPECT_EQ(state.step, 2);
  EXPECT_EQ(state.tokens, 2 * batch.rows());
  EXPECT_EQ(state.epoch, 2);
  EXPECT_EQ(state.epoch_step, 7);  // the next one
  EXPECT_EQ(state.epoch_steps, 9);
  EXPECT_EQ(state.skipped_steps, 0);
  EXPECT_FALSE(StepResult().skipped);
  EXPECT_EQ(StepResult().loss, 0);
  EXPECT_EQ(StepResult().gradient_norm, 0);
}

TEST(Trainer, NonFiniteStepsInARowAreCountedUntilAFiniteOne) {
  Trainer trainer = make_trainer({});
  const torch::NoGradGuard no_gradients;
  const auto weight = trainer.decoder().norm->weight;
  const auto kept = weight.clone();
  weight[0] = std::nan("");
  for (int i = 1; i <= 3; ++i) {
    const torch::AutoGradMode gradients(true);
    EXPECT_TRUE(trainer.step(random_batch(1), 1e-3).skipped);
    EXPECT_EQ(trainer.state().consecutive_nonfinite_steps, i);
  }
  weight.copy_(kept);
  const torch::AutoGradMode gradients(true);
  EXPECT_FALSE(trainer.step(random_batch(1), 1e-3).skipped);
  EXPECT_EQ(trainer.state().consecutive_nonfinite_steps, 0);
  EXPECT_EQ(trainer.state().skipped_steps, 3);
  EXPECT_EQ(trainer.state().step, 4);
}

TEST(Trainer, DropoutDiffersFromStepToStepAndSeedToSeed) {
  const auto second_loss = [](uint64_t seed) {
    ModelConfig model = tiny_config(50);
    model.dropout = 0.3;
    Trainer trainer(make_decoder(model), {}, seed, torch::kCPU);
    const double first = trainer.step(random_batch(1), 0).loss;
    EXPECT_NE(trainer.step(random_batch(1), 0).loss, first);
    return first;
  };
  EXPECT_NE(second_loss(1), second_loss(2));
}

TEST(Trainer, TheEvaluationModelHasNoDropoutAndTheLossIsReportedUnsmoothed) {
  TrainConfig config;
  config.label_smoothing = 0.2;
  Trainer dropping = make_trainer(config, 0.5), plain = make_trainer(config);
  const Batch batch = random_batch(1, 2);
  const double loss = evaluation_loss(plain, {batch});
  EXPECT_DOUBLE_EQ(evaluation_loss(dropping, {batch}), loss);
  EXPECT_NEAR(plain.step(batch, 0).loss, loss, 1e-6);
}

TEST(Trainer, TheTrainedParametersAreCounted) {
  EXPECT_EQ(make_trainer({}).trained_parameter_count(), make_trainer({}).decoder().parameter_count());
  auto decoder = make_decoder(tiny_config(50));
  decoder->embedding->weight.set_requires_grad(false);
  EXPECT_EQ(Trainer(decoder, {}, 1, torch::kCPU).trained_parameter_count(),
            decoder->parameter_count() - 50 * 16);
}

TEST(Trainer, TheRawWeightsComeBackWhereTheUseOfTheAverageFails) {
  TrainConfig config;
  config.ema_decay = 0.9;
  Trainer trainer = make_trainer(config);
  for (uint32_t i = 0; i < 3; ++i) trainer.step(random_batch(i), 1e-2);
  const auto raw = trainer.decoder().embedding->weight.detach().clone();
  EXPECT_THROW(trainer.with_evaluation_model([](const Decoder&) { throw std::runtime_error("failed"); }),
               std::runtime_error);
  EXPECT_TRUE(torch::equal(raw, trainer.decoder().embedding->weight));
  EXPECT_TRUE(trainer.decoder().embedding->weight.requires_grad());
}

TEST(Trainer, ASnapshotHoldsAllThatAStepDependsOn) {
  TrainConfig config;
  config.ema_decay = 0.9;
  Trainer trainer = make_trainer(config);
  for (uint32_t i = 0; i < 3; ++i) trainer.step(random_batch(i), 1e-2);
  const Tokenizer tokenizer =
      Tokenizer::load(std::string(CALQUE_SOURCE_FOLDER) + "/tests/golden/tokenizer/bpe.model");
  const CheckpointContent content = trainer.snapshot(tokenizer);
  EXPECT_EQ(content.tokenizer, tokenizer.serialized());
  EXPECT_EQ(content.tokenizer_file, "tokenizer.model");
  EXPECT_EQ(content.progress, trainer.state().to_json());
  EXPECT_EQ(content.config, hf_config(trainer.decoder().config()));
  EXPECT_TRUE(content.adapters.empty());
  std::map<std::string, torch::Tensor> state(content.state.begin(), content.state.end());
  const size_t parameters = trainer.decoder().parameters().size();
  EXPECT_EQ(state.size(), 4 * parameters);  // mean, square, step; and the raw weights beside the averaged
  EXPECT_TRUE(torch::equal(state.at("weights.embedding.weight"), trainer.decoder().embedding->weight));
  EXPECT_EQ(state.at("optimizer.norm.weight.step").item<float>(), 3);
}

TEST(Trainer, ClippingLeavesASmallGradientAlone) {
  TrainConfig loose, none;
  loose.max_grad_norm = 1e6;
  none.max_grad_norm = 0;
  Trainer a = make_trainer(loose), b = make_trainer(none);
  EXPECT_EQ(a.step(random_batch(1), 1e-3).gradient_norm, b.step(random_batch(1), 1e-3).gradient_norm);
  EXPECT_EQ(worst_weight_difference(a, b), 0);
}

TEST(Optimizer, NormsDoNotDecayAndEachParameterHasItsOwnRate) {
  TrainConfig config;
  config.weight_decay = 0.5;
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::muon}) {
    config.optimizer = kind;
    std::vector<TrainedParameter> parameters = {{"norm", torch::ones({4}), 1, {}},
                                                {"matrix", torch::ones({4, 4}), 1, {4}},
                                                {"slow", torch::ones({4, 4}), 0.5, {4}}};
    for (TrainedParameter& parameter : parameters)
      parameter.tensor.mutable_grad() = torch::zeros_like(parameter.tensor);  // nothing but decay
    Optimizer optimizer(parameters, config);
    optimizer.step(0.1);
    EXPECT_EQ(parameters[0].tensor.min().item<float>(), 1.0F);
    EXPECT_NEAR(parameters[1].tensor.max().item<double>(), 1 - 0.1 * 0.5, 1e-6);
    EXPECT_NEAR(parameters[2].tensor.max().item<double>(), 1 - 0.05 * 0.5, 1e-6);
    std::vector<std::string> names;
    for (const auto& [name, tensor] : optimizer.state()) names.push_back(name);
    EXPECT_EQ(names.size(), kind == OptimizerKind::adamw ? 9U : 5U);
  }
}

// The algorithm as Jordan et al. (2024) and Liu et al. (2025) write it, in double precision.
TEST(Optimizer, MuonMatchesTheTextbookOnFusedParts) {
  at::manual_seed(3);
  TrainConfig config;
  config.optimizer = OptimizerKind::muon;
  config.muon_method = MuonMethod::newton_schulz;
  config.weight_decay = 0.1;
  TrainedParameter fused{"fused", torch::randn({10, 6}), 0.5, {4, 6}};
  Optimizer optimizer({fused}, config);
  auto expected = fused.tensor.to(torch::kFloat64), momentum = torch::zeros_like(expected);
  for (int t = 0; t < 3; ++t) {
    const auto gradient = torch::randn({10, 6});
    fused.tensor.mutable_grad() = gradient.clone();
    optimizer.step(0.02);
    const auto g = gradient.to(torch::kFloat64);
    momentum = 0.95 * momentum + g;
    const auto update = g + 0.95 * momentum;
    expected = expected * (1 - 0.01 * 0.1);
    for (const auto& [begin, end] : {std::pair{0, 4}, std::pair{4, 10}}) {
      auto x = update.slice(0, begin, end);
      x = x / x.norm();
      for (int i = 0; i < 5; ++i) {
        const auto square = x.mm(x.t());
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square.mm(square)).mm(x);
      }
      expected.slice(0, begin, end).sub_(x, 0.01 * 0.2 * std::sqrt(6.0));
    }
  }
  EXPECT_LT((fused.tensor - expected).abs().max().item<double>(), 1e-4);
}

TEST(Optimizer, BfloatProductsChangeMuonsUpdateByRoundingOnly) {
  at::manual_seed(5);
  const auto start = torch::randn({32, 48}), gradient = torch::randn({32, 48});
  std::vector<torch::Tensor> moved;
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    TrainConfig config;
    config.optimizer = OptimizerKind::muon;
    config.precision = precision;
    TrainedParameter matrix{"m", start.clone(), 1, {32}};
    Optimizer optimizer({matrix}, config);
    matrix.tensor.mutable_grad() = gradient.clone();
    optimizer.step(0.1);
    moved.push_back(matrix.tensor - start * (1 - 0.1 * config.weight_decay));
  }
  EXPECT_LT((moved[0] - moved[1]).norm().item<double>(), 0.05 * moved[0].norm().item<double>());
  EXPECT_GT((moved[0] - moved[1]).norm().item<double>(), 0);
}

}  // namespace calque

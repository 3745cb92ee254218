// Several ranks that train one model, as threads of this process.
#include <gmock/gmock.h>

#include <mutex>

#include "calque/train/run_setup.h"
#include "calque/train/trainer.h"
#include "distributed/ranks.h"
#include "temporary_folder.h"
#include "tiny_model.h"
#include "train/random_batch.h"

namespace calque {
namespace {

constexpr double learning_rate = 3e-3;

std::shared_ptr<Decoder> new_decoder() {
  auto decoder = std::make_shared<Decoder>(tiny_config(50));
  decoder->initialise(1);
  return decoder;
}

Trainer make_trainer(const TrainConfig& config, const Distribution& distribution = {}) {
  return {new_decoder(), config, 7, torch::kCPU, {}, distribution};
}

// A view: the group lives as long as the test's rank does.
Distribution of(ProcessGroup& group, const DistributedConfig& config = {}) {
  return {std::shared_ptr<ProcessGroup>(std::shared_ptr<void>(), &group), config};
}

std::vector<torch::Tensor> weights(const Trainer& trainer) {
  std::vector<torch::Tensor> all;
  for (const auto& parameter : trainer.decoder().parameters()) all.push_back(parameter.detach().clone());
  return all;
}

double worst_difference(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, (a[i] - b[i]).abs().max().item<double>());
  return worst;
}

void make_steps(Trainer& trainer, uint32_t first, uint32_t last, int pairs = 12) {
  ProcessGroup& group = trainer.group();
  for (uint32_t step = first; step < last; ++step)
    trainer.step(random_batch(step, pairs, group.rank(), group.size()), learning_rate);
}

// The weights of all ranks, after `work` with a trainer on each.
std::vector<std::vector<torch::Tensor>> train_on(int ranks, const TrainConfig& config,
                                                 const DistributedConfig& distributed,
                                                 const std::function<void(Trainer&)>& work) {
  std::mutex mutex;
  std::vector<std::vector<torch::Tensor>> all(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](ProcessGroup& group) {
    Trainer trainer = make_trainer(config, of(group, distributed));
    work(trainer);
    const std::lock_guard lock(mutex);
    all[static_cast<size_t>(group.rank())] = weights(trainer);
  });
  return all;
}

TEST(DistributedTraining, RanksEndWithTheWeightsOfOne) {
  for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::muon}) {
    TrainConfig config;
    config.optimizer = optimizer;
    config.max_grad_norm = 0.5;  // is reached
    config.ema_decay = 0.9;
    config.micro_batch_tokens = 60;
    Trainer alone = make_trainer(config);
    make_steps(alone, 0, 8);
    for (const int ranks : {2, 3, 4}) {
      const auto all = train_on(ranks, config, {}, [](Trainer& trainer) { make_steps(trainer, 0, 8); });
      for (const auto& one : all) {
        EXPECT_LT(worst_difference(one, weights(alone)), 2e-5) << ranks << " ranks";
        EXPECT_EQ(worst_difference(one, all.front()), 0) << ranks << " ranks";
      }
    }
  }
}

TEST(DistributedTraining, ResultsOfAStepAreThoseOfAllRanks) {
  Trainer alone = make_trainer({});
  const StepResult expected = alone.step(random_batch(1), learning_rate);
  run_ranks(3, [&](ProcessGroup& group) {
    Trainer trainer = make_trainer({}, of(group));
    const StepResult result = trainer.step(random_batch(1, 12, group.rank(), 3), learning_rate);
    EXPECT_NEAR(result.loss, expected.loss, 1e-5);
    EXPECT_NEAR(result.gradient_norm, expected.gradient_norm, 1e-5);
    EXPECT_EQ(result.rows, expected.rows);
    EXPECT_EQ(result.labels, expected.labels);
    EXPECT_EQ(trainer.state().tokens, alone.state().tokens);
  });
}

TEST(DistributedTraining, ARankWithoutPairsTakesPart) {
  TrainConfig config;
  Trainer alone = make_trainer(config);
  make_steps(alone, 0, 4, 2);
  const auto all = train_on(3, config, {}, [](Trainer& trainer) { make_steps(trainer, 0, 4, 2); });
  for (const auto& one : all) EXPECT_LT(worst_difference(one, weights(alone)), 1e-5);
}

TEST(DistributedTraining, ANonfiniteGradientOnOneRankSkipsTheStepOnAll) {
  const auto before = weights(make_trainer({}));
  run_ranks(2, [&](ProcessGroup& group) {
    Trainer trainer = make_trainer({}, of(group));
    const torch::NoGradGuard no_gradients;
    if (group.rank() == 1) trainer.decoder().norm->parameters().front().fill_(std::nan(""));
    {
      const torch::AutoGradMode gradients(true);
      EXPECT_TRUE(trainer.step(random_batch(1, 12, group.rank(), 2), learning_rate).skipped);
    }
    EXPECT_EQ(trainer.state().skipped_steps, 1);
    if (group.rank() == 1) return;  // its weights are those that were damaged
    EXPECT_EQ(worst_difference(weights(trainer), before), 0);
  });
}

TEST(DistributedTraining, EachRankHoldsItsShareOfTheOptimizer) {
  for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::muon}) {
    TrainConfig config;
    config.optimizer = optimizer;
    const int64_t alone = make_trainer(config).optimizer_state_bytes();
    for (const int ranks : {2, 4}) {
      std::mutex mutex;
      int64_t largest = 0, all = 0;
      run_ranks(ranks, [&](ProcessGroup& group) {
        Trainer trainer = make_trainer(config, of(group));
        EXPECT_EQ(trainer.optimizer_seconds(), 0);
        make_steps(trainer, 0, 1);
        EXPECT_GT(trainer.optimizer_seconds(), 0);
        const std::lock_guard lock(mutex);
        largest = std::max(largest, trainer.optimizer_state_bytes());
        all += trainer.optimizer_state_bytes();
      });
      EXPECT_NEAR(static_cast<double>(all), static_cast<double>(alone), 100);  // counters of steps
      EXPECT_LT(static_cast<double>(largest), 1.2 * static_cast<double>(alone) / ranks) << ranks << " ranks";
    }
  }
}

class DistributedCheckpoint : public testing::Test {
 protected:
  // The tokenizer is only carried along.
  static Tokenizer tokenizer() {
    return Tokenizer::load(source_folder() / "tests/golden/tokenizer/bpe.model");
  }

  void save(Trainer& trainer) const {
    const CheckpointContent content = trainer.snapshot(tokenizer());
    if (trainer.group().is_first()) write_checkpoint(folder_ / "checkpoint", content);
    trainer.group().barrier();
  }
  void restore(Trainer& trainer) const {
    std::optional<Checkpoint> checkpoint;
    if (trainer.group().is_first()) checkpoint.emplace(folder_ / "checkpoint");
    trainer.restore(checkpoint ? &*checkpoint : nullptr);
  }

  TemporaryFolder folder_;
};

TEST_F(DistributedCheckpoint, ContinuesOnAnyNumberOfRanks) {
  TrainConfig config;
  config.optimizer = OptimizerKind::muon;
  config.ema_decay = 0.9;
  Trainer alone = make_trainer(config);
  make_steps(alone, 0, 8);
  std::vector<torch::Tensor> averaged;
  alone.with_evaluation_model([&](const Decoder&) { averaged = weights(alone); });
  for (const int before : {1, 3}) {
    train_on(before, config, {}, [&](Trainer& trainer) {
      make_steps(trainer, 0, 4);
      save(trainer);
    });
    for (const int now : {1, 2, 3}) {
      const auto all = train_on(now, config, {}, [&](Trainer& trainer) {
        restore(trainer);
        EXPECT_EQ(trainer.state().step, 4);
        make_steps(trainer, 4, 8);
        trainer.with_evaluation_model([&](const Decoder&) {  // the averaged weights, on every rank
          EXPECT_LT(worst_difference(weights(trainer), averaged), 2e-5)
              << before << " to " << now << " ranks";
        });
      });
      for (const auto& one : all)
        EXPECT_LT(worst_difference(one, weights(alone)), 2e-5) << before << " to " << now << " ranks";
    }
  }
}

TEST_F(DistributedCheckpoint, HoldsWholeTensorsWhateverTheNumberOfRanks) {
  for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::muon}) {
    TrainConfig config;
    config.optimizer = optimizer;
    Trainer alone = make_trainer(config);
    make_steps(alone, 0, 2);
    const NamedTensors expected = alone.snapshot(tokenizer()).state;
    train_on(4, config, {}, [&](Trainer& trainer) {
      make_steps(trainer, 0, 2);
      const NamedTensors state = trainer.snapshot(tokenizer()).state;
      if (!trainer.group().is_first()) return;
      ASSERT_EQ(state.size(), expected.size());
      for (size_t i = 0; i < state.size(); ++i) {
        EXPECT_EQ(state[i].first, expected[i].first);
        EXPECT_TRUE(state[i].second.allclose(expected[i].second, 1e-3, 1e-6)) << state[i].first;
      }
    });
  }
}

TEST_F(DistributedCheckpoint, OnTheSameNumberOfRanksTheBitsAreThoseOfAnUninterruptedRun) {
  for (const int64_t local_steps : {1, 2}) {
    TrainConfig config;
    DistributedConfig distributed;
    distributed.local_steps = local_steps;
    distributed.outer_momentum = 0.9;
    const auto rounds = [](Trainer& trainer, uint32_t first, uint32_t last) {
      for (uint32_t step = first; step < last; step += 2) {
        std::vector<StepResult> results;
        for (uint32_t i = 0; i < 2; ++i)
          results.push_back(
              trainer.step(random_batch(step + i, 12, trainer.group().rank(), 2), learning_rate));
        trainer.end_round(results);
      }
    };
    const auto whole = train_on(2, config, distributed, [&](Trainer& trainer) { rounds(trainer, 0, 8); });
    train_on(2, config, distributed, [&](Trainer& trainer) {
      rounds(trainer, 0, 4);
      save(trainer);
    });
    const auto continued = train_on(2, config, distributed, [&](Trainer& trainer) {
      restore(trainer);
      rounds(trainer, 4, 8);
    });
    EXPECT_EQ(worst_difference(continued[0], whole[0]), 0) << local_steps;
    EXPECT_EQ(worst_difference(continued[1], whole[1]), 0) << local_steps;
  }
}

TEST_F(DistributedCheckpoint, WithLocalStepsMoreRanksCanJoin) {
  TrainConfig config;
  DistributedConfig distributed;
  distributed.local_steps = 2;
  train_on(2, config, distributed, [&](Trainer& trainer) {
    make_steps(trainer, 0, 2);
    trainer.end_round({StepResult()});
    save(trainer);
  });
  const auto all = train_on(3, config, distributed, [&](Trainer& trainer) {
    restore(trainer);
    make_steps(trainer, 2, 4);
    trainer.end_round({StepResult()});
  });
  EXPECT_EQ(worst_difference(all[0], all[2]), 0);
}

TEST_F(DistributedCheckpoint, WithLocalStepsEachRankHasItsOwnLossScale) {
  TrainConfig config;
  config.precision = Precision::float16;
  DistributedConfig distributed;
  distributed.local_steps = 2;
  train_on(2, config, distributed, [&](Trainer& trainer) {
    if (trainer.group().rank() == 1) {
      const torch::NoGradGuard no_gradients;
      trainer.decoder().norm->parameters().front().fill_(std::nan(""));
    }
    make_steps(trainer, 0, 1);
    EXPECT_EQ(trainer.state().loss_scale->value, trainer.group().is_first() ? 65536 : 32768);
    save(trainer);
  });
  train_on(3, config, distributed, [&](Trainer& trainer) {
    restore(trainer);  // the third is new
    EXPECT_EQ(trainer.state().loss_scale->value, trainer.group().rank() == 1 ? 32768 : 65536);
  });
}

TEST(LocalSteps, ARankWithoutPairsLeavesItsWeightsAsTheyAre) {
  for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::muon}) {
    TrainConfig config;
    config.optimizer = optimizer;
    DistributedConfig distributed;
    distributed.local_steps = 2;
    std::vector<torch::Tensor> mean = weights(make_trainer(config));
    for (torch::Tensor& weight : mean) weight /= 3;
    for (int rank = 0; rank < 2; ++rank) {
      Trainer trainer = make_trainer(config);
      for (uint32_t step = 0; step < 2; ++step) trainer.step(random_batch(step, 2, rank, 3), learning_rate);
      const auto its = weights(trainer);
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += its[i] / 3;
    }
    const auto all = train_on(3, config, distributed, [&](Trainer& trainer) {
      std::vector<StepResult> results;
      for (uint32_t step = 0; step < 2; ++step)
        results.push_back(trainer.step(random_batch(step, 2, trainer.group().rank(), 3), learning_rate));
      EXPECT_FALSE(results.back().skipped);
      EXPECT_FALSE(trainer.end_round(results).skipped);
    });
    for (const auto& one : all) EXPECT_LT(worst_difference(one, mean), 1e-6);
  }
}

TEST(LocalSteps, WithoutMomentumARoundAveragesTheWeights) {
  TrainConfig config;
  config.optimizer = OptimizerKind::muon;
  DistributedConfig distributed;
  distributed.local_steps = 3;
  distributed.outer_learning_rate = 1;
  distributed.outer_momentum = 0;
  std::vector<std::vector<torch::Tensor>> separate;
  for (int rank = 0; rank < 2; ++rank) {
    Trainer trainer = make_trainer(config);
    for (uint32_t step = 0; step < 3; ++step) trainer.step(random_batch(step, 12, rank, 2), learning_rate);
    separate.push_back(weights(trainer));
  }
  std::vector<torch::Tensor> mean;
  for (size_t i = 0; i < separate[0].size(); ++i) mean.push_back((separate[0][i] + separate[1][i]) / 2);
  EXPECT_GT(worst_difference(separate[0], separate[1]), 1e-3);
  const auto all = train_on(2, config, distributed, [&](Trainer& trainer) {
    std::vector<StepResult> results;
    for (uint32_t step = 0; step < 3; ++step)
      results.push_back(trainer.step(random_batch(step, 12, trainer.group().rank(), 2), learning_rate));
    const StepResult round = trainer.end_round(results);
    EXPECT_EQ(round.rows, random_batch(0).rows() + random_batch(1).rows() + random_batch(2).rows());
    EXPECT_EQ(trainer.state().tokens, round.rows);
    EXPECT_EQ(trainer.state().step, 3);
  });
  EXPECT_LT(worst_difference(all[0], mean), 1e-6);
  EXPECT_EQ(worst_difference(all[0], all[1]), 0);
}

TEST(LocalSteps, TheOuterStepIsNesterovsOnTheMeanChange) {
  DistributedConfig config;
  config.outer_learning_rate = 0.5;
  config.outer_momentum = 0.8;
  run_ranks(2, [&](ProcessGroup& group) {
    const torch::Tensor weight = torch::full({1}, 1.0);
    DeviceGroup device_group(group, torch::kCPU);
    OuterOptimizer outer({{"w", weight}}, config, device_group);
    weight.add_(group.rank() == 0 ? -0.25 : -0.75);  // a mean change of -0.5
    outer.step();
    EXPECT_NEAR(weight.item<double>(), 1 - 0.5 * (0.5 + 0.8 * 0.5), 1e-6);  // 0.55
    weight.add_(-0.1);
    outer.step();
    const double momentum = 0.8 * 0.5 + 0.1;
    EXPECT_NEAR(weight.item<double>(), 0.55 - 0.5 * (0.1 + 0.8 * momentum), 1e-6);
  });
}

TEST(DistributedTraining, CompressedGradientsChangeLittle) {
  DistributedConfig distributed;
  distributed.compress = Compression::bfloat16;
  TrainConfig config;
  config.optimizer = OptimizerKind::muon;
  Trainer alone = make_trainer(config);
  make_steps(alone, 0, 4);
  const auto all = train_on(2, config, distributed, [](Trainer& trainer) { make_steps(trainer, 0, 4); });
  EXPECT_EQ(worst_difference(all[0], all[1]), 0);
  const double difference = worst_difference(all[0], weights(alone));
  EXPECT_GT(difference, 1e-5);  // it was compressed
  EXPECT_LT(difference, 2e-2);
}

}  // namespace
}  // namespace calque

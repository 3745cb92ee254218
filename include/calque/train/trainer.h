// Trainer: a model, its optimizer and their counters. It makes training steps, computes the validation loss,
// and is saved to a checkpoint and restored from it bit for bit. Several ranks, each with a trainer and its
// share of every batch, train one model: they call the same functions in the same order. What to do when is
// the training loop's business.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "calque/checkpoint/checkpoint.h"
#include "calque/data/batch.h"
#include "calque/distributed/device_group.h"
#include "calque/model/decoder.h"
#include "calque/runs/distributed_config.h"
#include "calque/runs/finetune_config.h"
#include "calque/runs/train_config.h"
#include "calque/train/gradient_sum.h"
#include "calque/train/optimizer.h"
#include "calque/train/outer_optimizer.h"
#include "calque/train/parameter_shards.h"
#include "calque/train/run_state.h"

namespace calque {

// The ranks that train one model; by default a single one.
struct Distribution {
  std::shared_ptr<ProcessGroup> group = std::make_shared<ProcessGroup>();
  DistributedConfig config = {};

  // Ranks that make steps of their own have complete optimizers, and different weights between rounds.
  bool is_local() const { return config.local_steps > 1 && !group->is_alone(); }
};

// Of one step, or of several. Over all ranks, except with local steps before end_round().
struct StepResult {
  double loss = 0;  // nats per label, without label smoothing
  double gradient_norm = 0;
  bool skipped = false;  // the gradient was not finite
  int64_t rows = 0;
  int64_t labels = 0;
};

class Trainer {
 public:
  Trainer(std::shared_ptr<Decoder> decoder, const TrainConfig& config, uint64_t seed, torch::Device device,
          const FinetuneConfig& finetune = {}, const Distribution& distribution = {});

  // `batch`: this rank's share of the step's pairs, possibly none.
  StepResult step(const Batch& batch, double learning_rate);
  // After local steps, with their results: brings the ranks' weights together.
  StepResult end_round(const std::vector<StepResult>& results);

  // Calls `use` with the model in evaluation mode, the EMA weights swapped in where there are any.
  void with_evaluation_model(const std::function<void(const Decoder&)>& use);

  // Everything but the run's own part of CheckpointContent::progress, on rank 0; on others, nothing of use.
  CheckpointContent snapshot(const Tokenizer& tokenizer);
  void restore(const Checkpoint* checkpoint);  // rank 0 has one; the others get theirs from it

  const TrainerState& state() const { return state_; }
  const Decoder& decoder() const { return *decoder_; }
  int64_t trained_parameter_count() const;
  // Of this rank: the bytes of its part of the optimizer's state, and the seconds of its updates so far
  // without what the ranks then tell each other.
  int64_t optimizer_state_bytes() const;
  double optimizer_seconds() const { return optimizer_seconds_; }
  ProcessGroup& group() const { return *distribution_.group; }

 private:
  void clear_gradients();
  StepResult accumulate(const Batch& batch);
  double clip_gradients(double& loss);
  void count(const StepResult& result);
  void update_average();
  void swap_average();
  void update(double learning_rate);
  NamedTensors own_optimizer_state() const;
  nlohmann::json progress() const;
  void restore_progress(const nlohmann::json& progress);

  std::shared_ptr<Decoder> decoder_;
  TrainConfig config_;
  uint64_t seed_;
  torch::Device device_;
  Distribution distribution_;
  DeviceGroup device_group_;
  std::vector<TrainedParameter> trained_;
  ParameterShards shards_;
  Optimizer optimizer_;
  std::unique_ptr<GradientSum> gradient_sum_;        // of several ranks without local steps
  std::unique_ptr<OuterOptimizer> outer_optimizer_;  // with local steps
  std::vector<torch::Tensor> average_;  // EMA of the trained parameters; empty without train.ema_decay
  TrainerState state_;
  double optimizer_seconds_ = 0;
};

}  // namespace calque

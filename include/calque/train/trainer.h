// Trainer: a model, its optimizer and their counters. It makes training steps, computes the validation loss,
// and is saved to a checkpoint and restored from it bit for bit. What to do when is the training loop's
// business.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "calque/checkpoint/checkpoint.h"
#include "calque/data/batch.h"
#include "calque/model/decoder.h"
#include "calque/runs/finetune_config.h"
#include "calque/runs/train_config.h"
#include "calque/train/optimizer.h"
#include "calque/train/run_state.h"

namespace calque {

struct StepResult {
  double loss = 0;  // nats per label, without label smoothing
  double gradient_norm = 0;
  bool skipped = false;  // the gradient was not finite
};

class Trainer {
 public:
  Trainer(std::shared_ptr<Decoder> decoder, const TrainConfig& config, uint64_t seed, torch::Device device,
          const FinetuneConfig& finetune = {});

  StepResult step(const Batch& batch, double learning_rate);

  // Mean loss per label, in evaluation mode, with the EMA weights where there are any.
  double validation_loss(const std::vector<Batch>& batches);
  // Calls `use` with the model in evaluation mode, the EMA weights swapped in where there are any.
  void with_evaluation_model(const std::function<void(const Decoder&)>& use);

  // Everything but the run's own part of CheckpointContent::progress.
  CheckpointContent snapshot(const Tokenizer& tokenizer);
  void restore(const Checkpoint& checkpoint);

  const TrainerState& state() const { return state_; }
  const Decoder& decoder() const { return *decoder_; }
  int64_t trained_parameter_count() const;

 private:
  double accumulate(const Batch& batch);
  double clip_gradients();
  void update_average();
  void swap_average();

  std::shared_ptr<Decoder> decoder_;
  TrainConfig config_;
  uint64_t seed_;
  torch::Device device_;
  std::vector<TrainedParameter> trained_;
  Optimizer optimizer_;
  std::vector<torch::Tensor> average_;  // EMA of the trained parameters; empty without train.ema_decay
  TrainerState state_;
};

}  // namespace calque

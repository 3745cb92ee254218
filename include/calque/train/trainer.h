// Trainer: one model, its optimizer and their counters. It makes a step from a batch, measures a validation
// set, and can be copied out into a checkpoint and back in, bit for bit. What to do when is decided above it.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "calque/data/batch.h"
#include "calque/model/decoder.h"
#include "calque/train/checkpoint_writer.h"
#include "calque/train/optimizer.h"
#include "calque/train/train_config.h"

namespace calque {

// What a run has behind it: all that resuming needs besides tensors.
struct TrainingProgress {
  int64_t step = 0;
  int64_t epoch = 0;  // where the next batch is
  int64_t epoch_step = 0;
  int64_t epoch_steps = 0;
  int64_t tokens = 0;
  double seconds = 0;
  double best_valid_loss = 1e30;
  double best_valid_bleu = -1;
  int64_t best_step = -1;
  int64_t validations_without_gain = 0;
  int64_t skipped_steps = 0;
  int64_t bad_steps_in_a_row = 0;
  std::string train_hash;  // of the corpus, by which a changed one is noticed

  nlohmann::json to_json() const;
  static TrainingProgress from_json(const nlohmann::json& json);
};

struct StepResult {
  double loss = 0;  // nats a label, without label smoothing
  double gradient_norm = 0;
  bool skipped = false;  // the gradient was not finite
};

class Trainer {
 public:
  Trainer(std::shared_ptr<Decoder> decoder, const TrainConfig& config, uint64_t seed, torch::Device device,
          const Optimizer::RateShare& rate_share = {});

  StepResult step(const Batch& batch, double learning_rate);

  // Mean loss a label over batches, with the averaged weights where there are any.
  double validate(const std::vector<Batch>& batches);
  // Calls `use` with the model as it would be saved: averaged where there is an average, without dropout.
  void show_model(const std::function<void(const std::shared_ptr<const Decoder>&)>& use);

  CheckpointContent snapshot(const Tokenizer& tokenizer);
  void restore(const Checkpoint& checkpoint);

  TrainingProgress& progress() { return progress_; }
  const TrainingProgress& progress() const { return progress_; }
  const Decoder& decoder() const { return *decoder_; }
  int64_t trained_parameters() const;

 private:
  double accumulate(const Batch& batch);
  double clip_gradients();
  void update_average();
  void swap_average();

  std::shared_ptr<Decoder> decoder_;
  TrainConfig config_;
  uint64_t seed_;
  torch::Device device_;
  Optimizer optimizer_;
  NamedTensors trained_;                // the parameters that have a gradient
  std::vector<torch::Tensor> average_;  // of these, in their order; empty without train.ema
  TrainingProgress progress_;
};

}  // namespace calque

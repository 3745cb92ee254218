// What a run has behind it, beside the tensors: TrainerState is counted by the trainer, RunState is
// remembered by the loop. Both are stored in every checkpoint.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "calque/train/loss_scale.h"

namespace calque {

struct TrainerState {
  int64_t step = 0;
  int64_t epoch = 0;  // the position of the next batch
  int64_t epoch_step = 0;
  int64_t epoch_steps = 0;
  int64_t tokens = 0;
  int64_t skipped_steps = 0;
  int64_t consecutive_nonfinite_steps = 0;
  std::optional<LossScale> loss_scale = {};  // with train.precision=float16 alone

  double epochs() const;  // as a fraction: 2.5 is halfway through the third
  nlohmann::json to_json() const;
  static TrainerState from_json(const nlohmann::json& json);
};

struct RunState {
  double seconds = 0;
  double best_valid_loss = 1e30;
  double best_valid_bleu = -1;
  int64_t best_step = -1;
  int64_t validated_step = -1;
  double valid_loss = 1e30;  // at validated_step
  int64_t validations_without_gain = 0;
  int64_t shown_samples = 0;
  std::string train_hash;  // of the corpora, to notice changes
  std::string valid_hash;
  std::string config;  // the text of config.yaml, to notice edits
  std::string run_id;

  nlohmann::json to_json() const;
  static RunState from_json(const nlohmann::json& json);
};

}  // namespace calque

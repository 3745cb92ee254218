// TrainConfig: the `train` section of a configuration.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "calque/base/field.h"

namespace calque {

enum class OptimizerKind { adamw, muon };
enum class MuonMethod { polar_express, newton_schulz };
enum class ScheduleKind { cosine, linear, inverse_sqrt, constant };
enum class Precision { automatic, float32, bfloat16, float16 };
enum class BestBy { loss, bleu };

template <>
struct EnumNames<OptimizerKind> {
  static constexpr std::string_view names[] = {"adamw", "muon"};
};
template <>
struct EnumNames<MuonMethod> {
  static constexpr std::string_view names[] = {"polar_express", "newton_schulz"};
};
template <>
struct EnumNames<ScheduleKind> {
  static constexpr std::string_view names[] = {"cosine", "linear", "inverse_sqrt", "constant"};
};
template <>
struct EnumNames<Precision> {
  static constexpr std::string_view names[] = {"auto", "float32", "bfloat16", "float16"};
};
template <>
struct EnumNames<BestBy> {
  static constexpr std::string_view names[] = {"loss", "bleu"};
};

struct TrainConfig {
  int64_t batch_tokens = 4096;
  int64_t micro_batch_tokens = 0;
  bool gradient_checkpointing = false;
  int64_t steps = 0;
  double epochs = 0;
  int64_t tokens = 0;
  Minutes minutes;
  OptimizerKind optimizer = OptimizerKind::adamw;
  MuonMethod muon_method = MuonMethod::polar_express;
  double learning_rate = 1e-3;
  int64_t warmup_steps = 400;
  ScheduleKind schedule = ScheduleKind::cosine;
  double decay_fraction = 0.2;
  double final_lr_fraction = 0;
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double max_grad_norm = 1.0;
  double label_smoothing = 0;
  double ema_decay = 0;
  Precision precision = Precision::automatic;
  std::string device = "auto";
  int64_t threads = 0;
  int64_t log_every = 50;
  int64_t validate_every = 500;
  int64_t validate_sentences = 200;
  BestBy best_by = BestBy::loss;
  int64_t patience = 0;
  int64_t checkpoint_every = 500;
  int64_t keep_checkpoints = 2;
  int64_t max_nonfinite_steps = 20;
  bool overfit_batch = false;
  bool tensorboard = false;
};
Fields fields(TrainConfig& config);

inline constexpr int64_t default_steps = 20'000;  // where a configuration sets no limit at all

void check_train(const TrainConfig& config);

}  // namespace calque

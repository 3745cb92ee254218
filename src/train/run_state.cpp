#include "calque/train/run_state.h"

#include <algorithm>

namespace calque {

using nlohmann::json;

double TrainerState::epochs() const {
  return static_cast<double>(epoch) +
         static_cast<double>(epoch_step) / static_cast<double>(std::max<int64_t>(epoch_steps, 1));
}

json TrainerState::to_json() const {
  json all = {{"step", step},
              {"epoch", epoch},
              {"epoch_step", epoch_step},
              {"epoch_steps", epoch_steps},
              {"tokens", tokens},
              {"skipped_steps", skipped_steps},
              {"consecutive_nonfinite_steps", consecutive_nonfinite_steps}};
  if (loss_scale) all["loss_scale"] = {{"value", loss_scale->value}, {"good_steps", loss_scale->good_steps}};
  return all;
}

TrainerState TrainerState::from_json(const json& j) {
  TrainerState s;
  s.step = j.at("step");
  s.epoch = j.at("epoch");
  s.epoch_step = j.at("epoch_step");
  s.epoch_steps = j.at("epoch_steps");
  s.tokens = j.at("tokens");
  s.skipped_steps = j.at("skipped_steps");
  s.consecutive_nonfinite_steps = j.value("consecutive_nonfinite_steps", int64_t{0});
  if (j.contains("loss_scale"))
    s.loss_scale = LossScale{j["loss_scale"].at("value"), j["loss_scale"].at("good_steps")};
  return s;
}

json RunState::to_json() const {
  return {{"seconds", seconds},
          {"best_valid_loss", best_valid_loss},
          {"best_valid_bleu", best_valid_bleu},
          {"best_step", best_step},
          {"validated_step", validated_step},
          {"valid_loss", valid_loss},
          {"validations_without_gain", validations_without_gain},
          {"shown_samples", shown_samples},
          {"train_hash", train_hash},
          {"valid_hash", valid_hash},
          {"config", config},
          {"run_id", run_id}};
}

RunState RunState::from_json(const json& j) {
  RunState s;
  s.seconds = j.at("seconds");
  s.best_valid_loss = j.at("best_valid_loss");
  s.best_valid_bleu = j.value("best_valid_bleu", s.best_valid_bleu);
  s.best_step = j.at("best_step");
  s.validated_step = j.value("validated_step", s.validated_step);
  s.valid_loss = j.value("valid_loss", s.valid_loss);
  s.validations_without_gain = j.at("validations_without_gain");
  s.shown_samples = j.value("shown_samples", int64_t{0});
  s.train_hash = j.value("train_hash", "");
  s.valid_hash = j.value("valid_hash", "");
  s.config = j.value("config", "");
  s.run_id = j.value("run_id", "");
  return s;
}

}  // namespace calque

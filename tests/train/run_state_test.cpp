#include "calque/train/run_state.h"

#include <gtest/gtest.h>

namespace calque {

using nlohmann::json;

TEST(TrainerState, EveryFieldIsWrittenAndReadBack) {
  const json all = {{"step", 1},
                    {"epoch", 2},
                    {"epoch_step", 3},
                    {"epoch_steps", 4},
                    {"tokens", 5},
                    {"skipped_steps", 6},
                    {"consecutive_nonfinite_steps", 7}};
  EXPECT_EQ(TrainerState::from_json(all).to_json(), all);
  json scaled = all;
  scaled["loss_scale"] = {{"value", 8.0}, {"good_steps", 9}};
  EXPECT_EQ(TrainerState::from_json(scaled).to_json(), scaled);
  json none;
  for (const auto& [key, value] : all.items()) none[key] = 0;
  EXPECT_EQ(TrainerState().to_json(), none);
}

TEST(TrainerState, OfAnOlderCheckpointHasNoNonfiniteStepsInARow) {
  json older = TrainerState().to_json();
  older.erase("consecutive_nonfinite_steps");
  EXPECT_EQ(TrainerState::from_json(older).consecutive_nonfinite_steps, 0);
}

TEST(TrainerState, EpochsCountTheBegunOneByItsSteps) {
  TrainerState state;
  EXPECT_EQ(state.epochs(), 0);  // before the first batch the epoch's length is unknown
  state.epoch = 2;
  state.epoch_step = 1;
  state.epoch_steps = 4;
  EXPECT_DOUBLE_EQ(state.epochs(), 2.25);
}

TEST(RunState, EveryFieldIsWrittenAndReadBack) {
  const json all = {{"seconds", 1.5},
                    {"best_valid_loss", 2.5},
                    {"best_valid_bleu", 3.5},
                    {"best_step", 4},
                    {"validated_step", 5},
                    {"valid_loss", 6.5},
                    {"validations_without_gain", 7},
                    {"shown_samples", 8},
                    {"train_hash", "a"},
                    {"valid_hash", "b"},
                    {"config", "c"},
                    {"run_id", "d"}};
  EXPECT_EQ(RunState::from_json(all).to_json(), all);
}

TEST(RunState, BeginsWithoutAValidation) {
  const json begin = {
      {"seconds", 0},       {"best_valid_loss", 1e30}, {"best_step", -1},  {"best_valid_bleu", -1},
      {"valid_loss", 1e30}, {"validated_step", -1},    {"run_id", ""},     {"validations_without_gain", 0},
      {"train_hash", ""},   {"shown_samples", 0},      {"valid_hash", ""}, {"config", ""}};
  EXPECT_EQ(RunState().to_json(), begin);
  // The first releases stored these alone.
  const json oldest = {
      {"seconds", 0}, {"best_valid_loss", 1e30}, {"best_step", -1}, {"validations_without_gain", 0}};
  EXPECT_EQ(RunState::from_json(oldest).to_json(), begin);
}

}  // namespace calque

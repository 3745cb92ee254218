// What a training run tells and keeps: its log, its metrics, its state and its summary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "calque/base/hash.h"
#include "calque/base/units.h"
#include "calque/kernels/threads.h"
#include "calque/runs/run_folder.h"
#include "calque/train/checkpoint_writer.h"
#include "calque/train/schedule.h"
#include "train/training_fixture.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_F(TrainingTest, TheLogSaysWhatIsTrainedOnWhatAndWhyItEnded) {
  RunConfig config = small_run(folder_);
  config.train.precision = Precision::float32;
  config.train.threads = 1;
  set_num_threads(2);
  const TrainingResult result = run(config);
  EXPECT_EQ(num_threads(), 1);
  const std::string log = log_of(config);
  EXPECT_THAT(log, HasSubstr("small: " + format_count(result.parameters) + " parameters, 546 pairs, " +
                             format_count(result.trainer.epoch_steps) + " steps per epoch\n"));
  EXPECT_THAT(log,
              HasSubstr("data.train: 14 pairs longer than data.max_tokens=100 and 0 with an empty side"));
  EXPECT_THAT(log, HasSubstr("step 30: validation loss "));
  EXPECT_THAT(log, HasSubstr(", the best so far"));
  EXPECT_THAT(log, HasSubstr("done after step 30 (train.steps=30)"));
  EXPECT_THAT(log, testing::Not(HasSubstr("resuming")));
  EXPECT_EQ(count_of(log, " → "), 3);  // a sample of each validation
  const json summary = json::parse(read_file(folder_ / "runs/small/summary.json"));
  EXPECT_EQ(summary, result.to_json());
  EXPECT_THAT(read_file(folder_ / "runs/small/summary.json"), HasSubstr("{\n  \"best_step\""));
  config.train.steps = 35;
  log::start_file(folder_ / "before.txt");  // until the run opens its own
  run(config, true);
  const std::string before = read_file(folder_ / "before.txt");
  EXPECT_THAT(before, HasSubstr("train.steps: 30 until now, 35 from here on"));
  EXPECT_THAT(log_of(config), HasSubstr("resuming " + (folder_ / "runs/small").string() + " after step 30"));
  EXPECT_THAT(before, testing::Not(HasSubstr("changed since the last checkpoint")));
}

TEST_F(TrainingTest, PairsThatAreLeftOutAreOnlyMentionedWhereThereAreAny) {
  RunConfig config = small_run(folder_);
  CorpusPart few;
  few.pairs = folder_.write("few.tsv", "Bonjour.\tHello.\nMerci.\tThank you.\n");
  config.data.train = config.data.valid = {few};
  config.train.steps = 6;
  run(config);
  EXPECT_THAT(log_of(config), testing::Not(HasSubstr("left out")));
  config.run = "long";
  config.data.valid.front().pairs =
      folder_.write("valid.tsv", "Bonjour.\tHello.\n" + std::string(500, 'x') + "\tlong\n");
  run(config);
  EXPECT_THAT(log_of(config), HasSubstr("data.valid: 1 pair longer than data.max_tokens=100"));
}

// Somebody may edit a run's configuration between two sessions of training.
TEST_F(TrainingTest, AnEditOfTheStoredConfigurationIsToldKeyByKey) {
  RunConfig config = small_run(folder_);
  run(config);
  const fs::path file = folder_ / "runs/small/config.yaml";
  const std::string before = read_file(file);
  const auto edit = [&](const std::string& from, const std::string& to) {
    std::string text = before;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_file(file, text.replace(at, from.size(), to));
  };
  config.train.steps = 35;
  edit("patience: 0", "patience: 3");
  log::start_file(folder_ / "before.txt");
  run(config, true);
  EXPECT_THAT(read_file(folder_ / "before.txt"),
              HasSubstr("config.yaml: train.patience was 0 at the last checkpoint and is 3 now"));
  const auto checkpoint =
      newest_checkpoint(folder_ / "runs/small/checkpoints", read_file(folder_ / "runs/small/run_id"));
  EXPECT_EQ(checkpoint->progress()["config"], read_file(file));  // as it is now

  const auto refusal = [&] {
    try {
      run(config, true);
      return std::string("none");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  edit("seed: 1", "seed: 2");
  EXPECT_THAT(refusal(), HasSubstr("config.yaml: seed is 1 in the run and 2 now"));
  edit("patience: 0", "patience: three");
  EXPECT_THAT(refusal(), HasSubstr("train.patience"));
  edit("patience: 0", "patiences: 0");
  EXPECT_THAT(refusal(), HasSubstr("train.patiences: no such key"));
}

TEST_F(TrainingTest, TheStateFollowsTheValidations) {
  RunConfig config = small_run(folder_);
  config.train.validate_every = 5;
  config.train.validate_sentences = 5;
  config.train.checkpoint_every = 0;
  config.train.keep_checkpoints = 100;
  const TrainingResult result = run(config);
  std::vector<json> validations;
  double best = 1e30, best_bleu = -1;
  int64_t best_step = -1, without_gain = 0;
  std::vector<int64_t> saved;
  for (const json& line : read_metrics(folder_ / "runs/small/metrics.jsonl")) {
    if (!line.contains("valid_loss")) continue;
    validations.push_back(line);
    best_bleu = std::max(best_bleu, line["valid_bleu"].get<double>());
    ++without_gain;
    if (line["valid_loss"].get<double>() >= best) continue;
    best = line["valid_loss"];
    best_step = line["step"];
    without_gain = 0;
    saved.insert(saved.begin(), best_step);
  }
  ASSERT_EQ(validations.size(), 6U);
  EXPECT_EQ(result.state.best_valid_loss, best);
  EXPECT_EQ(result.state.best_valid_bleu, best_bleu);
  EXPECT_EQ(result.state.best_step, best_step);
  EXPECT_EQ(result.state.valid_loss, validations.back()["valid_loss"]);
  EXPECT_EQ(result.state.validated_step, 30);
  EXPECT_EQ(result.state.validations_without_gain, without_gain);
  EXPECT_EQ(result.state.shown_samples, 6 * 4);
  EXPECT_EQ(validations[0]["samples"].size(), 4U);
  EXPECT_NE(validations[0]["samples"][0]["source"], validations[1]["samples"][0]["source"]);
  // Without checkpoint_every, the best ones are saved, and the end.
  if (saved.front() != 30) saved.insert(saved.begin(), 30);
  std::vector<int64_t> steps;
  for (const auto& [step, path] : list_checkpoints(folder_ / "runs/small/checkpoints")) steps.push_back(step);
  EXPECT_EQ(steps, saved);
}

TEST_F(TrainingTest, MetricsFollowTheScheduleAndTheClock) {
  RunConfig config = small_run(folder_);
  config.train.validate_every = 0;
  config.train.validate_sentences = 0;
  config.train.log_every = 1;
  const TrainingResult result = run(config);
  const auto lines = read_metrics(folder_ / "runs/small/metrics.jsonl");
  ASSERT_EQ(lines.size(), 31U);  // and the validation at the end
  double seconds = 0;
  for (int64_t i = 0; i < 30; ++i) {
    const json& line = lines[static_cast<size_t>(i)];
    EXPECT_EQ(line["step"], i + 1);
    EXPECT_DOUBLE_EQ(line["learning_rate"],
                     3e-3 * learning_rate_share(config.train, i, static_cast<double>(i) / 30));
    EXPECT_GE(line["seconds"], seconds);
    seconds = line["seconds"];
    // The waiting of a step is part of the run's time; that of earlier steps is not counted again.
    EXPECT_GE(line["waited_seconds"], 0);
    EXPECT_LE(line["waited_seconds"], seconds);
  }
  EXPECT_LE(seconds, result.state.seconds);
  EXPECT_EQ(lines.back()["step"], 30);
  EXPECT_TRUE(lines.back().contains("valid_loss"));
  EXPECT_FALSE(lines.back().contains("valid_bleu"));
}

TEST_F(TrainingTest, TooManyNonFiniteStepsInARowEndTheRunWithACheckpoint) {
  RunConfig config = small_run(folder_);
  config.train.learning_rate = 1e300;
  config.train.max_nonfinite_steps = 3;
  config.train.checkpoint_every = 0;
  config.train.validate_every = 0;
  try {
    run(config);
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("3 consecutive steps without a finite gradient; stopped at step 4"));
  }
  log::stop_file();
  EXPECT_EQ(count_of(log_of(config), "the update was skipped"), 3);
  const auto saved = list_checkpoints(folder_ / "runs/small/checkpoints");
  ASSERT_EQ(saved.size(), 1U);
  EXPECT_EQ(saved[0].first, 4);
  EXPECT_FALSE(fs::exists(folder_ / "runs/small/checkpoints/best"));
}

TEST_F(TrainingTest, AnInterruptSavesWithoutValidatingAndTheRunGoesOnFromThere) {
  RunConfig config = small_run(folder_);
  config.train.steps = 1'000'000;
  config.train.log_every = 1;
  config.train.validate_every = 0;
  config.train.checkpoint_every = 0;
  const fs::path metrics = folder_ / "runs/small/metrics.jsonl";
  std::thread interrupter([&] {
    // The loop catches the signal by the time that it writes metrics.
    while (!fs::exists(metrics)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    kill(getpid(), SIGINT);
  });
  const TrainingResult result = run(config);
  interrupter.join();
  EXPECT_EQ(result.end, TrainingEnd::interrupted);
  EXPECT_EQ(result.state.validated_step, -1);
  EXPECT_THAT(log_of(config), testing::ContainsRegex("`calque --runs .*/runs resume small` continues"));
  const auto saved = list_checkpoints(folder_ / "runs/small/checkpoints");
  ASSERT_EQ(saved.size(), 1U);
  EXPECT_EQ(saved[0].first, result.trainer.step);
  config.train.steps = result.trainer.step + 1;
  EXPECT_EQ(run(config, true).trainer.step, config.train.steps);
  EXPECT_THAT(log_of(config), HasSubstr("done after step"));
}

TEST_F(TrainingTest, AnotherTokenizerIsNoticedOnResume) {
  RunConfig config = small_run(folder_);
  run(config);
  fs::copy_file(source_folder() / "tests/golden/tokenizer/unigram.model",
                folder_ / "runs/small/tokenizer.model", fs::copy_options::overwrite_existing);
  config.train.steps = 40;
  EXPECT_THAT(refusal(config, true), HasSubstr("not the tokenizer that the run was trained with"));
}

TEST_F(TrainingTest, FreshRemovesWhatTheRunHeld) {
  RunConfig config = small_run(folder_);
  config.train.steps = 8;
  run(config);
  write_file(folder_ / "runs/small/old.txt", "old");
  const std::string id = read_file(folder_ / "runs/small/run_id");
  train(config, {folder_ / "runs", false, true});
  EXPECT_FALSE(fs::exists(folder_ / "runs/small/old.txt"));
  EXPECT_NE(read_file(folder_ / "runs/small/run_id"), id);
  EXPECT_EQ(Checkpoint(folder_ / "runs/small/checkpoints/step-8").progress()["run_id"],
            read_file(folder_ / "runs/small/run_id"));
}

TEST_F(TrainingTest, WithoutACorpusThereIsNothingToTrainOn) {
  RunConfig config = small_run(folder_);
  config.data.train.clear();
  EXPECT_EQ(refusal(config), "data.train is empty: there is nothing to train on");
  EXPECT_EQ(TrainingOptions().runs, "runs");
  EXPECT_EQ(TrainingOptions().cache(), "runs/.cache");
  EXPECT_FALSE(TrainingOptions().resume);
  EXPECT_FALSE(TrainingOptions().fresh);
}

TEST(TrainingResult, JsonHasWhatIsKnown) {
  TrainingResult result{TrainingEnd::limit, "train.steps=5", "runs/name", {}, {}, 7, 6, true, true};
  result.trainer.step = 5;
  result.state.seconds = 90;
  result.state.best_valid_bleu = 3.5;
  json all = TrainerState().to_json();
  all.update(RunState().to_json());
  all.erase("config");  // the run has it as a file
  all.update({{"step", 5},
              {"seconds", 90.0},
              {"best_valid_bleu", 3.5},
              {"run", "name"},
              {"end", "limit"},
              {"reason", "train.steps=5"},
              {"minutes", 1.5},
              {"parameters", 7},
              {"trained_parameters", 6}});
  EXPECT_EQ(result.to_json(), all);
  result.has_bleu = false;
  all.erase("best_valid_bleu");
  EXPECT_EQ(result.to_json(), all);
  result.has_validation = false;
  all.erase("best_valid_loss");
  all.erase("valid_loss");
  EXPECT_EQ(result.to_json(), all);
  result.end = TrainingEnd::patience;
  EXPECT_EQ(result.to_json()["end"], "patience");
  result.end = TrainingEnd::interrupted;
  EXPECT_EQ(result.to_json()["end"], "interrupted");
  EXPECT_EQ(TrainingResult().parameters + TrainingResult().trained_parameters, 0);
  EXPECT_FALSE(TrainingResult().has_validation || TrainingResult().has_bleu);
}

}  // namespace calque

#include "calque/train/training_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/runs/run_folder.h"
#include "calque/train/checkpoint_writer.h"
#include "calque/train/run_setup.h"
#include "train/training_fixture.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

}  // namespace

TEST_F(TrainingTest, ARunFolderExplainsItself) {
  const RunConfig config = small_run(folder_);
  const TrainingResult result = run(config);
  EXPECT_EQ(result.end, TrainingEnd::limit);
  const fs::path path = folder_ / "runs/small";
  for (const char* name : {"config.yaml", "tokenizer.model", "metrics.jsonl", "log.txt", "report.html",
                           "checkpoints/last/model.safetensors", "checkpoints/last/config.json",
                           "checkpoints/last/tokenizer.model", "checkpoints/best/model.safetensors"}) {
    EXPECT_TRUE(fs::exists(path / name)) << name;
  }
  const auto metrics = read_metrics(path / "metrics.jsonl");
  EXPECT_EQ(metrics.size(), 6u + 3u);
  EXPECT_LT(result.state.valid_loss, 6.0);
  EXPECT_EQ(read_run_config(path / "config.yaml", {}).train.steps, 30);  // and it reads back
}

TEST_F(TrainingTest, TheSameConfigurationGivesTheSameBits) {
  RunConfig one = small_run(folder_), two = one;
  two.run = "again";
  run(one);
  run(two);
  EXPECT_EQ(weights(one), weights(two));
  RunConfig other = one;
  other.run = "other";
  other.seed = 2;
  run(other);
  EXPECT_NE(weights(one), weights(other));
}

TEST_F(TrainingTest, StoppedAndResumedItEndsInTheSameBits) {
  for (const std::string kind : {"plain", "everything", "float16"}) {
    const bool everything = kind == "everything";
    RunConfig straight = small_run(folder_);
    straight.run = "straight-" + kind;
    if (kind == "float16") straight.train.precision = Precision::float16;
    straight.train.schedule =
        ScheduleKind::constant;  // does not depend on where the limit is, before its end
    straight.train.decay_fraction = 0;
    if (everything) {
      straight.model.dropout = 0.1;
      straight.finetune.init_embeddings = InitialEmbeddings::cooccurrence;
      straight.train.ema_decay = 0.95;
      straight.train.optimizer = OptimizerKind::muon;
      straight.tokenizer.sampling = 0.1;
      straight.train.micro_batch_tokens = 256;
    }
    RunConfig stopped = straight;
    stopped.run = "stopped-" + kind;
    run(straight);
    for (const int64_t steps : {7, 13, 24}) {
      stopped.train.steps = steps;
      run(stopped, steps != 7);
    }
    stopped.train.steps = 30;
    run(stopped, true);
    EXPECT_EQ(weights(straight), weights(stopped));
    const auto metrics = read_metrics(folder_ / "runs" / stopped.run / "metrics.jsonl");
    int64_t previous = 0;
    for (const auto& line : metrics) {
      EXPECT_GE(line["step"].get<int64_t>(), previous);
      previous = line["step"];
    }
  }
}

TEST_F(TrainingTest, APausedRunGoesOnAsIfItHadNeverStopped) {
  RunConfig straight = small_run(folder_), paused = straight;  // with a schedule that depends on the limit
  paused.run = "paused";
  run(straight);
  TrainingOptions options;
  options.runs = folder_ / "runs";
  options.shared_cache = folder_ / "elsewhere";
  int64_t steps = 0;
  options.after_step = [&](const TrainerState& at, double, double) { steps = at.step; };
  for (const double at : {7 / 30.0, 0.5, 1.0}) {
    options.pause_at = at;
    const TrainingResult result = train(paused, options);
    EXPECT_EQ(result.end, at < 1 ? TrainingEnd::paused : TrainingEnd::limit);
    EXPECT_EQ(result.to_json()["end"], at < 1 ? "paused" : "limit");
    EXPECT_EQ(result.trainer.step, std::llround(at * 30));
    EXPECT_EQ(steps, result.trainer.step);
    options.resume = true;
  }
  EXPECT_EQ(weights(straight), weights(paused));
  EXPECT_TRUE(fs::exists(folder_ / "elsewhere"));
}

TEST_F(TrainingTest, FreshDeletesNothingUntilTheNewRunCanBegin) {
  RunConfig config = small_run(folder_);
  run(config);
  const std::string before = weights(config);
  TrainingOptions fresh{folder_ / "runs", false, true};
  config.data.max_tokens = 500;
  EXPECT_THROW(train(config, fresh), UserError);
  EXPECT_EQ(weights(config), before);
  config.data.max_tokens = 100;
  config.train.steps = 12;
  train(config, fresh);
  EXPECT_NE(weights(config), before);
}

TEST_F(TrainingTest, WithoutValidationTheLastIsTheBest) {
  RunConfig config = small_run(folder_);
  config.data.valid.clear();
  run(config);
  EXPECT_EQ(read_file(folder_ / "runs/small/checkpoints/best/model.safetensors"), weights(config));
}

TEST_F(TrainingTest, FoldersThatAreNotOursStayAmongTheCheckpoints) {
  RunConfig config = small_run(folder_);
  config.train.keep_checkpoints = 1;
  fs::create_directories(folder_ / "runs/small/checkpoints/step-1-kept");
  fs::create_directories(folder_ / "runs/small/checkpoints/step-old");
  run(config);
  config.train.steps = 40;
  run(config, true);
  EXPECT_TRUE(fs::exists(folder_ / "runs/small/checkpoints/step-1-kept"));
  EXPECT_TRUE(fs::exists(folder_ / "runs/small/checkpoints/step-old"));
}

TEST_F(TrainingTest, ARunIsNeverOverwritten) {
  const RunConfig config = small_run(folder_);
  EXPECT_THAT(refusal(config, true), HasSubstr("there is no such run to resume"));
  run(config);
  EXPECT_THAT(refusal(config), HasSubstr("this run exists already"));
}

TEST_F(TrainingTest, SettingsThatAffectShapesCannotChangeOnResume) {
  RunConfig config = small_run(folder_);
  run(config);
  config.train.steps = 35;
  config.train.learning_rate = 1e-3;
  EXPECT_EQ(refusal(config, true), "accepted");
  config.model.hidden_size = 64;
  EXPECT_EQ(refusal(config, true),
            "model.hidden_size is 32 in the run and 64 now; it cannot change on resume");
}

TEST_F(TrainingTest, AnotherCorpusIsNoticedOnResume) {
  RunConfig config = small_run(folder_);
  const std::string corpus = read_file(config.data.train.front().pairs);
  config.data.train.front().pairs = folder_.write("train.tsv", corpus);
  config.train.steps = 10;
  run(config);
  config.train.steps = 20;
  folder_.write("train.tsv", corpus + "Encore un.\tOne more.\n");
  EXPECT_THAT(refusal(config, true), HasSubstr("data.train is not the one that the run was started with"));
  folder_.write("train.tsv", corpus);
  EXPECT_EQ(run(config, true).end, TrainingEnd::limit);
}

TEST_F(TrainingTest, ADamagedCheckpointFallsBackToTheOneBefore) {
  RunConfig config = small_run(folder_);
  run(config);
  const fs::path last = folder_ / "runs/small/checkpoints/step-30/model.safetensors";
  std::string bytes = read_file(last);
  bytes[bytes.size() / 2] ^= 1;
  write_file(last, bytes);
  EXPECT_THROW(Checkpoint(last.parent_path()).check_files(), UserError);
  const std::string good = [&] {
    RunConfig straight = config;
    straight.run = "straight";
    run(straight);
    return weights(straight);
  }();
  run(config, true);
  EXPECT_EQ(weights(config), good);
}

TEST_F(TrainingTest, WithoutAUsableCheckpointItRefusesInsteadOfStartingAgain) {
  RunConfig config = small_run(folder_);
  run(config);
  for (const auto& [step, path] : list_checkpoints(folder_ / "runs/small/checkpoints")) {
    std::string bytes = read_file(path / "state.safetensors");
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_file(path / "state.safetensors", bytes);
  }
  const std::string metrics = read_file(folder_ / "runs/small/metrics.jsonl");
  config.train.steps = 40;
  const std::string message = refusal(config, true);
  EXPECT_THAT(message, HasSubstr("no checkpoint can be used"));
  EXPECT_THAT(message, HasSubstr("step-30/state.safetensors: damaged"));
  EXPECT_THAT(message, HasSubstr("step-20/state.safetensors: damaged"));
  EXPECT_EQ(read_file(folder_ / "runs/small/metrics.jsonl"), metrics);
}

TEST_F(TrainingTest, ACheckpointOfAnotherRunIsNotAdopted) {
  RunConfig config = small_run(folder_);
  RunConfig longer = config;
  longer.run = "longer";
  longer.train.steps = 50;
  run(longer);
  run(config);
  fs::copy(folder_ / "runs/longer/checkpoints/step-50", folder_ / "runs/small/checkpoints/step-50",
           fs::copy_options::recursive);
  config.train.steps = 40;
  EXPECT_EQ(run(config, true).trainer.step, 40);
}

TEST_F(TrainingTest, WhatWasInterruptedBetweenTwoNamesIsFoundAgain) {
  RunConfig config = small_run(folder_);
  run(config);
  const fs::path checkpoints = folder_ / "runs/small/checkpoints";
  fs::rename(checkpoints / "step-30", checkpoints / ".step-30.old");  // killed while it was being replaced
  EXPECT_EQ(list_checkpoints(checkpoints).front().first, 30);
}

TEST_F(TrainingTest, ABestMarkThatWasNotSavedIsFoundAgain) {
  RunConfig config = small_run(folder_);
  run(config);
  // Killed after the last validation was logged and before it was saved: the checkpoint does not know of it.
  const fs::path last = folder_ / "runs/small/checkpoints/step-30";
  const Checkpoint checkpoint(last);
  EXPECT_EQ(checkpoint.progress()["validated_step"], 30);
  fs::remove_all(last);  // resumes at 20, makes the last steps and the validation again
  run(config, true);
  int validations = 0;
  for (const auto& line : read_metrics(folder_ / "runs/small/metrics.jsonl"))
    validations += line.contains("valid_loss");
  EXPECT_EQ(validations, 3);
  EXPECT_TRUE(
      same_model(folder_ / "runs/small/checkpoints/best", folder_ / "runs/small/checkpoints/step-30"));
}

TEST_F(TrainingTest, OtherValidationDataAndOtherWeightsAreNoticedOnResume) {
  RunConfig config = small_run(folder_);
  run(config);
  RunConfig other = config;
  other.train.steps = 40;
  other.data.train.front().weight = 2;
  EXPECT_THAT(refusal(other, true), HasSubstr("data.train is not the one"));
  other = config;
  other.train.steps = 40;
  other.data.valid = config.data.train;
  EXPECT_THAT(refusal(other, true), HasSubstr("data.valid is not the one"));
}

TEST_F(TrainingTest, KeepsTheNewestAndTheBest) {
  RunConfig config = small_run(folder_);
  config.train.keep_checkpoints = 1;
  config.train.checkpoint_every = 3;
  run(config);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "runs/small/checkpoints"))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names, testing::UnorderedElementsAre("step-30", "last", "best"));
  for (const char* name : {"last", "best"})
    EXPECT_NO_THROW(Checkpoint(folder_ / "runs/small/checkpoints" / name).make_decoder());
}

TEST_F(TrainingTest, LimitsByEpochsAndTokensEndTheRun) {
  RunConfig config = small_run(folder_);
  config.train.steps = 0;
  config.train.epochs = 1;
  const auto one_epoch = run(config).trainer;
  EXPECT_EQ(one_epoch.epoch_step, one_epoch.epoch_steps);
  EXPECT_EQ(one_epoch.epoch, 0);
  config.run = "tokens";
  config.train.epochs = 0;
  config.train.tokens = 2000;
  const TrainingResult by_tokens = run(config);
  EXPECT_GE(by_tokens.trainer.tokens, 2000);
  EXPECT_LT(by_tokens.trainer.tokens, 2000 + 512);
  EXPECT_EQ(by_tokens.reason, "train.tokens=2000");
}

TEST_F(TrainingTest, PatienceEndsARunThatDoesNotImprove) {
  RunConfig config = small_run(folder_);
  config.train.steps = 1000;
  config.train.validate_every = 1;
  config.train.learning_rate = 1e-12;
  config.train.patience = 3;
  EXPECT_EQ(run(config).end, TrainingEnd::patience);
}

TEST_F(TrainingTest, TheBestCanBeTheOneWithTheHighestBleuAndPatienceWaitsForIt) {
  RunConfig config = small_run(folder_);
  config.train.best_by = BestBy::bleu;
  config.train.validate_sentences = 20;
  config.train.learning_rate = 1e-12;  // nothing is learnt: BLEU stays where it was
  config.train.patience = 2;
  config.train.steps = 60;
  const TrainingResult result = run(config);
  EXPECT_EQ(result.end, TrainingEnd::patience);
  EXPECT_EQ(result.trainer.step, 30);
  EXPECT_EQ(result.state.best_step, 10);
  EXPECT_GE(result.state.best_valid_bleu, 0.0);
  config.run = "none";
  config.train.validate_sentences = 0;
  EXPECT_THROW(check_train(config.train), UserError);
}

TEST_F(TrainingTest, PlainTextTrainsALanguageModel) {
  RunConfig config = small_run(folder_);
  CorpusPart text;
  text.text = folder_.write("a.txt", "le chat mange une pomme\nla maison est grande\nil fait beau\n");
  config.data.train = {text};
  config.data.valid = {text};
  config.train.steps = 60;
  config.train.validate_every = 0;
  EXPECT_LT(run(config).state.valid_loss, 4.0);
}

TEST_F(TrainingTest, ImpossibleConfigurationsAreRefusedBeforeTheFirstStep) {
  RunConfig config = small_run(folder_);
  config.data.max_tokens = 500;
  EXPECT_THAT(
      refusal(config),
      HasSubstr("data.max_tokens=500 makes sequences of up to 502 tokens, but model.context_length=128"));
  config = small_run(folder_);
  config.run = "second";
  config.train.batch_tokens = 20;
  EXPECT_THAT(refusal(config), HasSubstr("train.batch_tokens=20 is too small for data.max_tokens=100"));
  config = small_run(folder_);
  config.run = "third";
  config.train.device = "cuda";
  EXPECT_THAT(refusal(config), HasSubstr("train.device=cuda"));
}

// The optimizer's products too: a resumed run has the precision that was stored.
TEST_F(TrainingTest, AutomaticPrecisionIsTheChosenOneInEveryPart) {
  RunConfig config = small_run(folder_);
  config.train.optimizer = OptimizerKind::muon;
  config.train.steps = 10;
  config.train.precision = Precision::automatic;
  run(config);
  RunConfig chosen = config;
  chosen.run = "chosen";
  chosen.train.precision = training_precision(config.train, torch::kCPU);
  run(chosen);
  EXPECT_EQ(weights(config), weights(chosen));
}

}  // namespace calque

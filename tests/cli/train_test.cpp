// calque train as a person uses it: killed, interrupted, resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run_calque.h"

namespace calque {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class TrainCommandTest : public testing::Test {
 protected:
  TrainCommandTest() {
    const std::string root = CALQUE_SOURCE_FOLDER;
    folder_.write("a.yaml", "data: {train: " + root + "/data/everyday/natural-train.tsv, valid: " + root +
                                "/data/everyday/natural-test.tsv, max_tokens: 100}\n"
                                "tokenizer: {path: " +
                                root +
                                "/tests/golden/tokenizer/bpe.model}\n"
                                "model: {size: tiny, context_length: 128}\n"
                                "train: {batch_tokens: 1024, steps: 120, warmup_steps: 10, checkpoint_every: "
                                "15, validate_every: 40, log_every: 5, threads: 2}\n");
  }

  std::string weights(const std::string& run) const {
    return read_file(folder_ / ("runs/" + run + "/checkpoints/last/model.safetensors"));
  }

  // Starts the command, sends `signal` once metrics.jsonl of the run has so many lines, and returns the exit
  // code. A run that never gets there is ended after a while.
  int stopped_by(const std::string& arguments, const std::string& run, const std::string& signal, int lines) {
    const std::string command = "cd '" + folder_.path().string() + "' && { '" CALQUE_BINARY "' " + arguments +
                                " >stdout 2>stderr & pid=$!; for i in $(seq 3000); do"
                                " [ \"$(cat runs/" +
                                run + "/metrics.jsonl 2>/dev/null | wc -l)\" -ge " + std::to_string(lines) +
                                " ] && break; sleep 0.01; done; kill -" + signal + " $pid; wait $pid; }";
    return WEXITSTATUS(std::system(command.c_str()));
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_F(TrainCommandTest, KilledAtAnyMomentAndResumedItEndsInTheSameBits) {
  const Outcome straight = run_calque(folder_, "train a.yaml run=straight");
  ASSERT_EQ(straight.code, 0) << straight.err;
  EXPECT_EQ(stopped_by("train a.yaml run=killed", "killed", "KILL", 1), 137);
  for (const int lines : {7, 12, 15, 20})
    EXPECT_EQ(stopped_by("resume killed", "killed", "KILL", lines), 137) << lines;
  const Outcome last = run_calque(folder_, "resume killed");
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(weights("straight"), weights("killed"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "runs/killed/checkpoints")) {
    EXPECT_FALSE(entry.path().filename().string().ends_with(".tmp")) << entry.path();
  }
}

TEST_F(TrainCommandTest, AChangedStoredConfigurationIsReportedOnResume) {
  ASSERT_EQ(run_calque(folder_, "train a.yaml run=one train.steps=20").code, 0);
  EXPECT_THAT(run_calque(folder_, "resume one train.steps=25").err, Not(HasSubstr("at the last checkpoint")));
  const auto file = folder_ / "runs/one/config.yaml";
  std::string text = read_file(file);
  text.replace(text.find("learning_rate: 0.001"), 20, "learning_rate: 0.003");
  folder_.write("runs/one/config.yaml", text);
  const Outcome resumed = run_calque(folder_, "resume one train.steps=30");
  EXPECT_EQ(resumed.code, 0);
  EXPECT_THAT(
      resumed.err,
      HasSubstr("config.yaml: train.learning_rate was 0.001 at the last checkpoint and is 0.003 now"));
}

TEST_F(TrainCommandTest, ADamagedTokenizerOfTheRunIsNoticedOnResume) {
  ASSERT_EQ(run_calque(folder_, "train a.yaml run=one train.steps=20").code, 0);
  const auto file = folder_ / "runs/one/tokenizer.model";
  std::string bytes = read_file(file);
  const size_t piece = bytes.find(
      "\x04\u2581"
      "a");  // a piece of four bytes: its letter becomes another
  ASSERT_NE(piece, std::string::npos);
  bytes[piece + 4] = '#';
  folder_.write("runs/one/tokenizer.model", bytes);
  const Outcome resumed = run_calque(folder_, "resume one train.steps=30");
  EXPECT_EQ(resumed.code, 2);
  EXPECT_THAT(resumed.err, HasSubstr("tokenizer.model: not the tokenizer that the run was trained with"));
}

TEST_F(TrainCommandTest, EverySignalThatEndsASessionSavesFirst) {
  ASSERT_EQ(run_calque(folder_, "train a.yaml run=straight").code, 0);
  for (const char* signal : {"INT", "TERM", "HUP"}) {
    const std::string run = std::string("stopped-") + signal;
    EXPECT_EQ(stopped_by("train a.yaml run=" + run, run, signal, 4), 130) << signal;
    EXPECT_THAT(read_file(folder_ / "stderr"),
                HasSubstr("everything is saved: `calque resume " + run + "` continues"));
    ASSERT_EQ(run_calque(folder_, "resume " + run).code, 0);
    EXPECT_EQ(weights("straight"), weights(run)) << signal;
  }
}

TEST_F(TrainCommandTest, AClosedPipeBehindStderrDoesNotEndIt) {
  const std::string command =
      "cd '" + folder_.path().string() +
      "' && { '" CALQUE_BINARY
      "' train a.yaml run=piped 2>&1 >/dev/null; echo $? >code; } | head -n 1 >/dev/null";
  std::system(command.c_str());
  EXPECT_EQ(read_file(folder_ / "code"), "0\n");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "runs/piped/summary.json"));
}

TEST_F(TrainCommandTest, ResumingKeepsTheStoredConfigurationAndTellsWhatChanges) {
  ASSERT_EQ(run_calque(folder_, "train a.yaml run=kept train.steps=30 train.learning_rate=2e-3").code, 0);
  const Outcome same = run_calque(folder_, "train a.yaml run=kept --resume");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.err, HasSubstr("train.steps: the run has 30, a.yaml has 120"));
  EXPECT_THAT(same.err, HasSubstr("done after step 30 (train.steps=30)"));
  const Outcome more = run_calque(folder_, "resume kept train.steps=45");
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_THAT(more.err, HasSubstr("train.steps: 30 until now, 45 from here on"));
  EXPECT_EQ(more.err.find("learning_rate"), std::string::npos);  // as it was given at the start
  EXPECT_EQ(run_calque(folder_, "train --resume run=kept").code, 0);
  EXPECT_EQ(run_calque(folder_, "train --resume").code, 2);
  EXPECT_EQ(run_calque(folder_, "resume none").code, 2);
}

TEST_F(TrainCommandTest, ARunWithoutItsCheckpointsIsNotResumed) {
  ASSERT_EQ(run_calque(folder_, "train a.yaml run=lost train.steps=45").code, 0);
  const std::string metrics = read_file(folder_ / "runs/lost/metrics.jsonl");
  std::filesystem::remove_all(folder_ / "runs/lost/checkpoints");
  for (const bool finished : {true, false}) {
    const Outcome out = run_calque(folder_, "resume lost train.steps=60");
    EXPECT_EQ(out.code, 2);
    EXPECT_THAT(out.err, HasSubstr("the run has reached step 45, but there is no checkpoint"));
    EXPECT_EQ(read_file(folder_ / "runs/lost/metrics.jsonl"), metrics);
    if (finished) std::filesystem::remove(folder_ / "runs/lost/summary.json");
  }
}

TEST_F(TrainCommandTest, AdaptersAreNotResumedOnAnotherBase) {
  ASSERT_EQ(run_calque(folder_, "train a.yaml run=one train.steps=15").code, 0);
  ASSERT_EQ(run_calque(folder_, "train a.yaml run=two train.steps=15 seed=2").code, 0);
  folder_.write("l.yaml",
                "data: {train: " CALQUE_SOURCE_FOLDER
                "/data/everyday/natural-train.tsv, max_tokens: 90}\n"
                "model: {init_from: runs/one, lora: {rank: 2}}\n"
                "train: {batch_tokens: 512, steps: 15, warmup_steps: 2, checkpoint_every: 5, threads: 1}\n");
  ASSERT_EQ(run_calque(folder_, "train l.yaml").code, 0);
  const Outcome out = run_calque(folder_, "resume l train.steps=20 model.init_from=runs/two");
  EXPECT_EQ(out.code, 2);
  EXPECT_THAT(out.err, HasSubstr("not the base model that the run's adapters were trained on"));
  const Outcome same =
      run_calque(folder_, "resume l train.steps=20 model.init_from=runs/one/checkpoints/last");
  EXPECT_EQ(same.code, 0) << same.err;
  // What the run itself resolved is not reported as a difference.
  EXPECT_EQ(run_calque(folder_, "train l.yaml train.steps=20 --resume").err.find("the run has"),
            std::string::npos);
}

TEST_F(TrainCommandTest, ADivergingTrainingIsReported) {
  const Outcome out =
      run_calque(folder_, "train a.yaml train.steps=15 train.learning_rate=50 train.validate_every=10");
  EXPECT_THAT(out.err, HasSubstr("the loss is above that of guessing"));
  EXPECT_THAT(run_calque(folder_, "train a.yaml run=fine train.steps=15").err, Not(HasSubstr("guessing")));
}

TEST_F(TrainCommandTest, TheCommandThatResumesIsPrintedAsItMustBeTyped) {
  const std::string command =
      "cd '" + folder_.path().string() +
      "' && { '" CALQUE_BINARY
      "' --runs 'other runs' train a.yaml 'run=a b' train.steps=5000 2>stderr & pid=$!;"
      " for i in $(seq 3000); do [ -s 'other runs/a b/metrics.jsonl' ] && break; sleep 0.01; done;"
      " kill -INT $pid; wait $pid; }";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 130);
  EXPECT_THAT(read_file(folder_ / "stderr"),
              HasSubstr("`calque --runs 'other runs' resume 'a b'` continues"));
}

TEST_F(TrainCommandTest, ARunsNameStandsForItsCheckpointTokenizerAndConfiguration) {
  ASSERT_EQ(run_calque(folder_, "train a.yaml run=named train.steps=15").code, 0);
  EXPECT_THAT(run_calque(folder_, "inspect named").out, HasSubstr("parameters"));
  EXPECT_THAT(run_calque(folder_, "inspect runs/named").out, HasSubstr("parameters"));
  EXPECT_THAT(run_calque(folder_, "config show named train.steps=77").out, HasSubstr("steps: 77"));
  for (const char* name : {"named", "runs/named/checkpoints/best"}) {
    const Outcome ids = run_calque(folder_, std::string("tokenizer encode ") + name, "Il fait beau.\n");
    EXPECT_EQ(ids.code, 0) << ids.err;
    EXPECT_EQ(run_calque(folder_, std::string("tokenizer decode ") + name, ids.out).out, "Il fait beau.\n");
  }
}

TEST_F(TrainCommandTest, DataCheckRefusesAVocabularyThatTrainingRefuses) {
  folder_.write("v.yaml", "data: {train: " CALQUE_SOURCE_FOLDER "/data/everyday/natural-train.tsv}\n");
  const Outcome out = run_calque(folder_, "data check v.yaml tokenizer.vocabulary=900000");
  EXPECT_EQ(out.code, 2);
  EXPECT_THAT(out.err, HasSubstr("tokenizer.vocabulary=900000 is too large"));
}

TEST_F(TrainCommandTest, RunsAreListedAndRemovedAndTheCacheIsPruned) {
  ASSERT_EQ(run_calque(folder_, "train a.yaml run=short train.steps=15").code, 0);
  const json runs = json::parse(run_calque(folder_, "runs --json").out);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0]["name"], "short");
  EXPECT_EQ(runs[0]["state"], "done");
  EXPECT_EQ(runs[0]["step"], 15);
  EXPECT_THAT(run_calque(folder_, "runs").out, HasSubstr("short"));
  EXPECT_EQ(run_calque(folder_, "runs remove shrt").code, 2);
  EXPECT_EQ(run_calque(folder_, "runs remove short").code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/short"));
  EXPECT_THAT(run_calque(folder_, "cache").out, HasSubstr(".tokens"));
  EXPECT_EQ(run_calque(folder_, "cache prune --older-than 1d").code, 0);
  EXPECT_THAT(run_calque(folder_, "cache").out, HasSubstr(".tokens"));
  EXPECT_EQ(run_calque(folder_, "cache prune").code, 0);
  EXPECT_EQ(run_calque(folder_, "cache").out.find(".tokens"), std::string::npos);
}

TEST_F(TrainCommandTest, KeysWithoutEffectAreReported) {
  const Outcome out = run_calque(
      folder_, "train a.yaml train.steps=15 train.threads=1000 model.lora.alpha=3 model.base_lr_scale=0.5");
  EXPECT_EQ(out.code, 0) << out.err;
  for (const char* text : {"train.threads=1000, but this machine has", "model.lora.* has no effect",
                           "model.base_lr_scale has no effect"})
    EXPECT_THAT(out.err, HasSubstr(text));
}

TEST_F(TrainCommandTest, AFailedStartLeavesNothingBehind) {
  EXPECT_EQ(run_calque(folder_, "train a.yaml run=bad train.batch_tokens=20").code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/bad"));
}

TEST_F(TrainCommandTest, AMinuteLimitEndsTheRun) {
  const Outcome timed = run_calque(folder_, "train a.yaml run=timed train.steps=0 train.minutes=1s --json");
  ASSERT_EQ(timed.code, 0) << timed.err;
  const json summary = json::parse(timed.out);
  EXPECT_EQ(summary["reason"].get<std::string>().substr(0, 13), "train.minutes");
  EXPECT_GE(summary["seconds"].get<double>(), 1.0);
  EXPECT_GT(summary["step"].get<int64_t>(), 0);
}

TEST_F(TrainCommandTest, MistakesAreToldBeforeAnythingIsWritten) {
  const Outcome wrong = run_calque(folder_, "train a.yaml train.lerning_rate=1");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.err,
            "error: command line: train.lerning_rate: no such key; did you mean train.learning_rate?\n");
  EXPECT_EQ(run_calque(folder_, "train a.yaml model.heads=3").code, 2);
  EXPECT_EQ(run_calque(folder_, "train a.yaml --resume").code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/a/config.yaml"));
}

TEST_F(TrainCommandTest, DryRunEstimatesAndTrainsNothing) {
  const Outcome dry = run_calque(folder_, "train a.yaml --dry-run --json");
  ASSERT_EQ(dry.code, 0) << dry.err;
  const json estimate = json::parse(dry.out);
  EXPECT_EQ(estimate["steps"], 120);
  EXPECT_GT(estimate["tokens_per_second"].get<double>(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/a"));
}

TEST_F(TrainCommandTest, TheSummaryIsJsonAndEventFilesAreWrittenOnRequest) {
  const Outcome done = run_calque(folder_, "train a.yaml train.steps=20 train.tensorboard=true --json");
  ASSERT_EQ(done.code, 0) << done.err;
  const json summary = json::parse(done.out);
  EXPECT_EQ(summary["step"], 20);
  EXPECT_GT(summary["valid_loss"].get<double>(), 0);
  EXPECT_FALSE(std::filesystem::is_empty(folder_ / "runs/a/tensorboard"));
}

// Of every command that trains: short for train.device.
TEST_F(TrainCommandTest, TheDeviceIsAnOption) {
  const Outcome trained =
      run_calque(folder_, "train a.yaml run=one train.steps=2 train.warmup_steps=1 --device cpu");
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const char* command :
       {"train a.yaml run=two", "resume one", "tune a.yaml --steps 20", "bench train --config a.yaml"}) {
    const Outcome refused = run_calque(folder_, command + std::string(" --device none"));
    EXPECT_EQ(refused.code, 2) << command;
    EXPECT_THAT(refused.err, HasSubstr("train.device=none")) << command;
  }
}

}  // namespace calque

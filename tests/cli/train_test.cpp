// calque train as a person uses it: killed, interrupted, resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run_calque.h"

namespace calque {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class TrainCommandTest : public testing::Test {
 protected:
  TrainCommandTest() {
    const std::string root = CALQUE_SOURCE_FOLDER;
    folder_.write("a.yaml", "data: {train: " + root + "/data/everyday/natural-train.tsv, valid: " + root +
                                "/data/everyday/natural-test.tsv, max_tokens: 100}\n"
                                "tokenizer: {path: " +
                                root +
                                "/tests/golden/tokenizer/bpe.model}\n"
                                "model: {size: tiny, max_positions: 128}\n"
                                "train: {batch_tokens: 1024, steps: 120, warmup_steps: 10, checkpoint_every: "
                                "15, validate_every: 40, threads: 2}\n");
  }

  std::string weights(const std::string& run) const {
    return read_file(folder_ / ("runs/" + run + "/checkpoints/last/model.safetensors"));
  }

  // Starts the command, sends `signal` after so long, and gives the exit code.
  int stopped_by(const std::string& arguments, const std::string& signal, double seconds) {
    const std::string command = "cd '" + folder_.path().string() + "' && { '" CALQUE_BINARY "' " + arguments +
                                " >stdout 2>stderr & pid=$!; sleep " + std::to_string(seconds) + "; kill -" +
                                signal + " $pid 2>/dev/null; wait $pid; }";
    const int status = std::system(command.c_str());
    return WEXITSTATUS(status);
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_F(TrainCommandTest, KilledAtAnyMomentAndResumedItEndsInTheSameBits) {
  const Outcome straight = run_calque(folder_, "train a.yaml run=straight");
  ASSERT_EQ(straight.code, 0) << straight.err;
  int kills = 0;
  stopped_by("train a.yaml run=killed", "KILL", 0.45);
  for (const double seconds : {0.3, 0.7, 0.9, 1.1, 1.3}) {
    if (!std::filesystem::exists(folder_ / "runs/killed/config.yaml")) {  // killed before the run had begun
      stopped_by("train a.yaml run=killed", "KILL", seconds);
    } else {
      stopped_by("train a.yaml run=killed --resume", "KILL", seconds);
    }
    ++kills;
  }
  const Outcome last = run_calque(
      folder_, std::string("train a.yaml run=killed") +
                   (std::filesystem::exists(folder_ / "runs/killed/config.yaml") ? " --resume" : ""));
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(weights("straight"), weights("killed")) << kills;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "runs/killed/checkpoints")) {
    EXPECT_FALSE(entry.path().filename().string().ends_with(".tmp")) << entry.path();
  }
}

TEST_F(TrainCommandTest, InterruptedItSavesAndSaysHowToGoOn) {
  ASSERT_EQ(run_calque(folder_, "train a.yaml run=straight").code, 0);
  const int code = stopped_by("train a.yaml run=stopped", "INT", 1.2);
  if (code == 0) GTEST_SKIP() << "this machine was done before the signal came";
  EXPECT_EQ(code, 130);
  EXPECT_THAT(read_file(folder_ / "stderr"), HasSubstr("everything is saved"));
  ASSERT_EQ(run_calque(folder_, "train a.yaml run=stopped --resume").code, 0);
  EXPECT_EQ(weights("straight"), weights("stopped"));
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

}  // namespace calque

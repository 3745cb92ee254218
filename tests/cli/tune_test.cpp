// calque tune as a person uses it: killed, interrupted, resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run_calque.h"

namespace calque {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class TuneCommandTest : public testing::Test {
 protected:
  TuneCommandTest() {
    const std::string root = CALQUE_SOURCE_FOLDER;
    folder_.write("a.yaml",
                  "data: {train: " + root + "/data/everyday/natural-train.tsv, valid: " + root +
                      "/data/everyday/natural-test.tsv, max_tokens: 100}\n"
                      "tokenizer: {path: " +
                      root +
                      "/tests/golden/tokenizer/bpe.model}\n"
                      "model: {size: tiny, context_length: 128}\n"
                      "train: {batch_tokens: 512, warmup_steps: 2, checkpoint_every: 4, log_every: 1, "
                      "threads: 1}\n");
    folder_.write("space.yaml", "train.learning_rate: {log: [1e-4, 1e-2]}\n");
  }

  // Starts the command, sends `signal` once a trial's metrics have so many lines, and returns the exit code.
  int stopped_by(const std::string& arguments, const std::string& signal, const std::string& trial,
                 int lines) {
    const std::string command = "cd '" + folder_.path().string() + "' && { '" CALQUE_BINARY "' " + arguments +
                                " >stdout 2>stderr & pid=$!; for i in $(seq 3000); do"
                                " [ \"$(cat runs/a-tune/" +
                                trial + "/metrics.jsonl 2>/dev/null | wc -l)\" -ge " + std::to_string(lines) +
                                " ] && break; sleep 0.01; done; kill -" + signal + " $pid; wait $pid; }";
    return WEXITSTATUS(std::system(command.c_str()));
  }

  // The losses of all trials.
  static json losses(const std::string& out) {
    json all = json::array();
    for (const json& trial : json::parse(out)["trials"]) {
      all.push_back(trial["settings"]);
      for (const json& result : trial["results"]) all.push_back(result["bits_per_byte"]);
    }
    return all;
  }

  const std::string search_ = "tune a.yaml --steps 60 --trials 3 --space space.yaml --json";
  TemporaryFolder folder_;
};

}  // namespace

TEST_F(TuneCommandTest, KilledOrInterruptedItContinuesWithTheSameTrials) {
  const Outcome straight = run_calque(folder_, search_ + " run=straight");
  ASSERT_EQ(straight.code, 0) << straight.err;
  EXPECT_THAT(straight.err, HasSubstr("`calque train runs/straight-tune/best.yaml` trains it"));
  EXPECT_EQ(stopped_by(search_, "KILL", "trial-01", 5), 137);
  EXPECT_EQ(run_calque(folder_, search_).code, 2);  // it exists
  EXPECT_EQ(stopped_by("tune a.yaml --resume", "INT", "trial-02", 3), 130);
  EXPECT_THAT(read_file(folder_ / "stderr"),
              HasSubstr("everything is saved: `calque tune a.yaml --resume` continues"));
  const Outcome last = run_calque(folder_, "tune a.yaml --resume --json");
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(losses(last.out), losses(straight.out));
  EXPECT_EQ(json::parse(last.out)["best"], json::parse(straight.out)["best"]);
}

TEST_F(TuneCommandTest, ShowsASpaceToStartFrom) {
  const Outcome space = run_calque(folder_, "tune a.yaml --show-space");
  EXPECT_EQ(space.code, 0);
  EXPECT_THAT(space.out, HasSubstr("train.learning_rate: {log: [0.00025, 0.004]}"));
  EXPECT_EQ(run_calque(folder_, "tune a.yaml --minutes soon").code, 2);
}

}  // namespace calque

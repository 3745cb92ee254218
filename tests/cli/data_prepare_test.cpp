// calque data prepare as a person uses it: alone, under `calque launch`, killed, repeated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/run_calque.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class DataPrepareTest : public testing::Test {
 protected:
  DataPrepareTest() {
    const std::string root = CALQUE_SOURCE_FOLDER;
    folder_.write("a.yaml", "data: {train: " + root + "/data/everyday/natural-train.tsv, valid: " + root +
                                "/data/everyday/natural-test.tsv, max_tokens: 100}\n"
                                "tokenizer: {path: " +
                                root +
                                "/tests/golden/tokenizer/bpe.model}\n"
                                "model: {size: tiny, context_length: 128}\n"
                                "train: {batch_tokens: 1024, steps: 4, warmup_steps: 1, threads: 1}\n");
  }

  Outcome prepare(const std::string& runs, const std::string& more, const std::string& before = "") {
    return run_calque(folder_, before + "--runs " + runs + " data prepare a.yaml " + more);
  }

  // The cache's files by name.
  std::map<std::string, std::string> files(const std::string& runs) const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_ / runs / ".cache"))
      all[entry.path().filename().string()] = read_file(entry.path());
    return all;
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_F(DataPrepareTest, OneProcessAndSeveralMakeTheSameShards) {
  const Outcome alone = prepare("one", "--shards 4 --threads 2 --json");
  ASSERT_EQ(alone.code, 0) << alone.err;
  const json shards = json::parse(alone.out);
  ASSERT_EQ(shards.size(), 4U);
  int64_t pairs = 0;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(shards[i]["shard"], i);
    EXPECT_GT(shards[i]["tokens"], shards[i]["pairs"]);
    pairs += shards[i]["pairs"].get<int64_t>();
  }
  EXPECT_EQ(files("one").size(), 5U);  // and the validation data
  EXPECT_EQ(json::parse(prepare("whole", "--json").out)[0]["pairs"], pairs);
  const Outcome three =
      run_calque(folder_, "launch -n 3 data prepare a.yaml data.shards=4 --json --runs three");
  ASSERT_EQ(three.code, 0) << three.err;
  EXPECT_EQ(json::parse(three.out), shards);
  EXPECT_EQ(files("three"), files("one"));
}

TEST_F(DataPrepareTest, TrainingUsesWhatWasPrepared) {
  ASSERT_EQ(prepare("r", "--shards 2").code, 0);
  const auto before = files("r");
  const Outcome trained = run_calque(folder_, "launch -n 2 train a.yaml data.shards=2 run=x --runs r");
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err, testing::Not(HasSubstr("tokenising")));
  EXPECT_EQ(files("r"), before);
}

// At whatever moment it is killed: only complete files have their name, and the next call makes the others.
TEST_F(DataPrepareTest, KilledItIsRepeatedAndCompleteShardsStay) {
  ASSERT_EQ(prepare("whole", "--shards 8").code, 0);
  const auto whole = files("whole");
  ASSERT_EQ(whole.size(), 9U);
  const std::string command = "cd '" + folder_.path().string() +
                              "' && { '" CALQUE_BINARY
                              "' --runs killed data prepare a.yaml --shards 8 >/dev/null 2>&1 & pid=$!;"
                              " for i in $(seq 6000); do [ -n \"$(ls killed/.cache 2>/dev/null)\" ] && break;"
                              " sleep 0.005; done; sleep $DELAY; kill -9 $pid; wait $pid; }";
  for (const char* delay : {"0", "0.05", "0.2"}) {
    setenv("DELAY", delay, 1);
    std::system(command.c_str());
    for (const auto& [name, content] : files("killed")) {
      if (!name.ends_with(".tokens")) continue;  // a temporary one
      EXPECT_EQ(content, whole.at(name)) << name << " after " << delay;
    }
  }
  // A complete shard is not written again.
  ASSERT_EQ(prepare("killed", "--shards 8").code, 0);
  EXPECT_EQ(files("killed"), whole);
  const fs::path first = folder_ / "killed/.cache" / whole.begin()->first,
                 second = folder_ / "killed/.cache" / std::next(whole.begin())->first;
  struct stat before {
  }, after{};
  stat(first.c_str(), &before);
  fs::remove(second);
  ASSERT_EQ(prepare("killed", "--shards 8").code, 0);
  stat(first.c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(files("killed"), whole);
}

TEST_F(DataPrepareTest, MistakesOfTheUserAreNamed) {
  EXPECT_EQ(prepare("r", "--shards 0").code, 2);
  EXPECT_THAT(run_calque(folder_, "launch -n 3 data prepare a.yaml --shards 2").err,
              HasSubstr("data.shards=2 is less than the number of processes, 3"));
  folder_.write("few.tsv", "un\tone\ndeux\ttwo\n");
  const Outcome few = prepare("r", "data.train=few.tsv --shards 3");
  EXPECT_EQ(few.code, 2);
  EXPECT_THAT(few.err, HasSubstr("no usable pairs in shard 1 of 3"));
  folder_.write("bad.tsv", "un\tone\ndeux\ttwo\ntrois\n");
  const Outcome bad = run_calque(folder_, "launch -n 2 data prepare a.yaml data.train=bad.tsv --shards 2");
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.tsv:3: expected 2 columns"));
}

}  // namespace calque

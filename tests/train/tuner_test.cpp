#include "calque/train/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/log.h"
#include "temporary_folder.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// One search, which most tests look at: trial 0 learns nothing, its learning rate is far too small.
TuneOptions small_search(const TemporaryFolder& folder) {
  const std::string root = source_folder().string();
  TuneOptions options;
  options.config = folder.write(
      "a.yaml",
      "data: {train: " + root + "/data/everyday/natural-train.tsv, valid: " + root +
          "/data/everyday/natural-test.tsv, max_tokens: 100}\n"
          "tokenizer: {vocabulary: 400}\n"
          "model: {layers: 1, hidden_size: 32, heads: 2, mlp_size: 48, context_length: 128}\n"
          "train: {batch_tokens: 256, steps: 40, warmup_steps: 2, log_every: 1, learning_rate: 1e-5, "
          "checkpoint_every: 2, max_nonfinite_steps: 2, threads: 1}\n");
  options.runs = folder / "runs";
  options.steps = 20;
  options.trials = 4;
  options.seed = 2;
  options.space = folder.write("space.yaml",
                               "train.learning_rate: [1e-2, 3e-2]\n"
                               "tokenizer.vocabulary: [400, 600]\n"
                               "model.heads: [2, 3]\n");  // 3 heads do not divide 32
  return options;
}

class TunerTest : public testing::Test {
 protected:
  TunerTest() { log::start(log::Verbosity::quiet); }

  static const TuneResult& found() {
    static const TemporaryFolder folder;
    static const TuneResult result = tune(small_search(folder));
    return result;
  }

  std::string refusal() {
    try {
      tune(options_);
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  }

  // A copy of the finished search, to be resumed.
  void copy_found() { fs::copy(found().folder.parent_path(), options_.runs, fs::copy_options::recursive); }
  const Trial& best() const { return found().state.trials[*found().state.best()]; }

  TemporaryFolder folder_;
  TuneOptions options_ = small_search(folder_);
};

// Everything but how long it took.
nlohmann::json without_seconds(const TuneState& state) {
  nlohmann::json all = state.to_json();
  for (auto& trial : all["trials"]) {
    for (auto& result : trial["results"]) result.erase("seconds");
  }
  return all;
}

}  // namespace

TEST_F(TunerTest, FindsSettingsThatLearnAndWritesThemReadyToTrain) {
  EXPECT_FALSE(found().interrupted);
  ASSERT_EQ(found().state.trials.size(), 4U);
  EXPECT_EQ(found().state.complete_rungs(), 2U);
  EXPECT_NE(best().number, 0);
  EXPECT_EQ(best().results.back().step, 6);
  EXPECT_LT(best().results.front().bits_per_byte, found().state.trials[0].results.front().bits_per_byte);
  const RunConfig config = read_run_config(found().best, {});
  EXPECT_EQ(config.run, "a-tuned");
  EXPECT_EQ(config.train.steps, 40);  // the given limit, and not that of a trial
  EXPECT_GT(config.train.learning_rate, 5e-3);
  EXPECT_FALSE(config.data.valid.empty());
  EXPECT_THAT(read_file(found().report), HasSubstr("bits per byte, validation"));
}

TEST_F(TunerTest, SettingsThatDoNotFitAreReportedAndRankedLast) {
  const Trial& last = found().state.trials[found().state.ranking().back()];
  EXPECT_THAT(last.failure, HasSubstr("model.hidden_size=32 is not divisible by model.heads=3"));
  EXPECT_THAT(found().to_json()["trials"][static_cast<size_t>(last.number)]["failure"].dump(),
              HasSubstr("model.heads=3"));
}

TEST_F(TunerTest, TrialsThatAreOutKeepEverythingButTheirWeights) {
  int dropped = 0;
  for (size_t i = 0; i < found().state.trials.size(); ++i) {
    if (!found().state.is_dropped(i)) continue;
    const fs::path run = found().folder / found().state.trials[i].name();
    EXPECT_TRUE(fs::exists(run / "metrics.jsonl"));
    EXPECT_FALSE(fs::exists(run / "checkpoints"));
    ++dropped;
  }
  EXPECT_GT(dropped, 0);
  const fs::path checkpoints = found().folder / best().name() / "checkpoints";
  EXPECT_TRUE(fs::exists(checkpoints / "best"));
  const fs::directory_iterator kept(checkpoints);
  EXPECT_EQ(
      std::count_if(begin(kept), end(kept),
                    [](const auto& entry) { return entry.path().filename().string().starts_with("step-"); }),
      1);
  EXPECT_FALSE(fs::exists(found().folder / ".cache"));
  EXPECT_TRUE(fs::exists(found().folder / "../.cache"));
}

TEST_F(TunerTest, StoppedAnywhereAndResumedItEndsTheSame) {
  copy_found();
  // As if it had been killed in the second rung: of the best trial everything is lost, of trial 0 the result.
  TuneState state = found().state;
  state.trials[0].results.clear();
  state.trials[static_cast<size_t>(best().number)].results.clear();
  write_file(options_.runs / "a-tune/search.json", state.to_json().dump());
  fs::remove_all(options_.runs / "a-tune" / best().name());
  options_.resume = true;
  EXPECT_EQ(without_seconds(tune(options_).state), without_seconds(found().state));
}

TEST_F(TunerTest, ALossThatIsNotFiniteFailsItsTrialOnly) {
  options_.space = folder_.write("space.yaml", "train.learning_rate: [1e30]\n");
  options_.trials = 2;
  const TuneResult result = tune(options_);
  EXPECT_THAT(result.state.trials[1].failure, HasSubstr("without a finite gradient"));
  EXPECT_EQ(result.state.complete_rungs(), 1U);
  EXPECT_EQ(result.state.best(), 0U);
}

TEST_F(TunerTest, ASearchIsNeverOverwrittenNorChanged) {
  options_.resume = true;
  EXPECT_THAT(refusal(), HasSubstr("there is no such search to resume"));
  fs::create_directories(options_.runs / "a-tune");
  options_.resume = false;
  EXPECT_THAT(refusal(), HasSubstr("exists, and is not a search"));
  fs::remove_all(options_.runs);
  copy_found();
  EXPECT_THAT(refusal(), HasSubstr("this search exists already"));
  options_.resume = true;
  options_.steps = 30;
  EXPECT_EQ(refusal(), "--steps is 20 in the search and 30 now; it cannot change on resume");
  options_.steps = {};
  options_.seed = 3;
  EXPECT_THAT(refusal(), HasSubstr("--seed is 2 in the search"));
  options_.seed = {};
  options_.trials = 3;
  EXPECT_THAT(refusal(), HasSubstr("--trials is 4 in the search"));
  options_.trials = 5;
  EXPECT_THAT(refusal(), HasSubstr("--trials is 4 in the search"));
  options_.trials = {};
  options_.space = folder_.write("other.yaml", "model.dropout: [0, 0.1]\n");
  EXPECT_THAT(refusal(), HasSubstr("is not the space that the search was started with"));
  options_.resume = false;
  options_.fresh = true;
  options_.steps = 12;
  options_.trials = 2;
  EXPECT_EQ(tune(options_).state.trials.size(), 2U);
}

TEST_F(TunerTest, NoTwoTrialsAreAlike) {
  options_.space = folder_.write("space.yaml", "train.learning_rate: [1e-5, 1e-2]\n");  // 1e-5 is trial 0
  EXPECT_EQ(tune(options_).state.trials.size(), 2U);
}

TEST_F(TunerTest, AConfigurationThatCannotTrainIsAnErrorAndLeavesNothing) {
  options_.overrides = {"train.batch_tokens=64"};
  EXPECT_THAT(refusal(), HasSubstr("train.batch_tokens=64 is too small"));
  EXPECT_FALSE(fs::exists(options_.runs / "a-tune"));
  options_.overrides = {"data.valid="};
  EXPECT_THAT(refusal(), HasSubstr("data.valid is empty"));
  options_.overrides = {};
  options_.steps = {};
  EXPECT_THAT(refusal(), HasSubstr("how long may the search take?"));
  options_.steps = 3;
  EXPECT_THAT(refusal(), HasSubstr("3 steps over 4 trials leave less than 1 step for each"));
}

TEST(TunedConfig, TakesAsLongAsTheGivenOne) {
  RunConfig config;
  config.train.steps = 1000;
  config.train.tokens = 2'000'000;
  config.train.epochs = 3;
  const TrialResult best{1.0, 0.3, 400, 400'000, 0.8, 20}, given{1.1, 0.3, 100, 200'000, 0.2, 10};
  const RunConfig tuned = tuned_config(config, best, given, BudgetUnit::seconds);
  EXPECT_EQ(tuned.train.steps, 2000);  // 20 instead of 10 steps per second
  EXPECT_EQ(tuned.train.tokens, 2'000'000);
  EXPECT_DOUBLE_EQ(tuned.train.epochs, 6);
  EXPECT_EQ(tuned_config(config, best, given, BudgetUnit::steps).train.steps, 1000);
}

}  // namespace calque

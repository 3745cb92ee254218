#include "calque/train/tune_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace calque {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Five trials, of which these have finished rungs with these losses.
TuneState five_trials(const std::vector<std::vector<double>>& losses) {
  TuneState state;
  state.total = 110;
  for (size_t i = 0; i < losses.size(); ++i) {
    Trial trial;
    trial.number = static_cast<int64_t>(i);
    trial.settings = {"train.learning_rate=0.00" + std::to_string(i)};
    for (const double loss : losses[i]) trial.results.push_back({loss, 0.3, 10, 1000, 0.5, 20});
    state.trials.push_back(trial);
  }
  return state;
}

}  // namespace

TEST(TuneState, TheBestOfARungGoOn) {
  const TuneState state = five_trials({{3}, {1}, {2}, {5}, {4}});
  EXPECT_THAT(state.contenders(0), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(state.contenders(1), ElementsAre(1, 2, 0));
  EXPECT_EQ(state.complete_rungs(), 1U);
  EXPECT_TRUE(state.is_dropped(3));
  EXPECT_FALSE(state.is_dropped(0));
  EXPECT_EQ(state.best(), 1U);
}

TEST(TuneState, NothingIsDroppedBeforeTheRungIsComplete) {
  const TuneState state = five_trials({{3}, {1}, {2}, {5}, {}});
  EXPECT_EQ(state.complete_rungs(), 0U);
  for (size_t i = 0; i < 5; ++i) EXPECT_FALSE(state.is_dropped(i));
}

TEST(TuneState, FailedTrialsAreLastAndTheirPlaceGoesToOthers) {
  TuneState state = five_trials({{3}, {1}, {2}, {}, {4}});
  state.trials[3].failure = "does not fit";
  state.trials[1].failure = "not finite";  // in its second rung
  EXPECT_TRUE(state.is_complete(0));
  EXPECT_THAT(state.contenders(1), ElementsAre(1, 2, 0));  // it had been chosen
  EXPECT_THAT(state.ranking(), ElementsAre(2, 0, 4, 1, 3));
  EXPECT_EQ(state.best(), 2U);
  EXPECT_THAT(state.table().back(), HasSubstr("does not fit"));
  for (Trial& trial : state.trials) trial.failure = "all";
  EXPECT_EQ(state.best(), std::nullopt);
}

TEST(TuneState, WhoCameFurtherRanksHigher) {
  const TuneState state = five_trials({{3, 2.9, 2.8}, {1, 4}, {2, 2.5, 2.7}, {5}, {4}});
  EXPECT_EQ(state.complete_rungs(), 3U);
  EXPECT_THAT(state.ranking(), ElementsAre(2, 0, 1, 4, 3));
  EXPECT_THAT(state.table()[1], HasSubstr("best"));
}

TEST(TuneState, IsReadAsItWasWritten) {
  TuneState state = five_trials({{3, 2.9}, {1, 1}, {2, 2.5}, {5}, {4}});
  state.trials[4].failure = "why";
  state.unit = BudgetUnit::steps;
  state.seed = 9;
  EXPECT_EQ(TuneState::from_json(state.to_json()).to_json(), state.to_json());
  EXPECT_EQ(TuneState::from_json(state.to_json()).trials[4].failure, "why");
}

}  // namespace calque

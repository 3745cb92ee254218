#include "calque/train/halving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"

namespace calque {

using testing::ElementsAre;

TEST(Halving, TheBetterHalfGoesOnToTwiceAsMuch) {
  EXPECT_THAT(plan_halving(16, 400, BudgetUnit::seconds),
              ElementsAre(Rung{16, 10}, Rung{8, 20}, Rung{4, 40}, Rung{2, 80}));
  EXPECT_THAT(plan_halving(5, 120, BudgetUnit::seconds), ElementsAre(Rung{5, 10}, Rung{3, 20}, Rung{2, 40}));
  EXPECT_THAT(plan_halving(1, 7, BudgetUnit::seconds), ElementsAre(Rung{1, 7}));
}

TEST(Halving, TheTrialsTogetherUseTheBudget) {
  for (int64_t trials = 1; trials < 40; ++trials) {
    double spent = 0, before = 0;
    for (const Rung& rung : plan_halving(trials, 1234, BudgetUnit::seconds)) {
      spent += static_cast<double>(rung.trials) * (rung.budget - before);
      before = rung.budget;
    }
    EXPECT_NEAR(spent, 1234, 1e-6) << trials;
  }
}

TEST(Halving, StepsAreWhole) {
  EXPECT_THAT(plan_halving(4, 35, BudgetUnit::steps), ElementsAre(Rung{4, 5}, Rung{2, 10}));
  EXPECT_THROW(plan_halving(4, 5, BudgetUnit::steps), UserError);
  EXPECT_EQ(plan_text(plan_halving(4, 6, BudgetUnit::steps), BudgetUnit::steps), "4 × 1 step, 2 × 2 steps");
}

}  // namespace calque

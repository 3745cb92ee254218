#include "calque/metrics/significance.h"

#include <gtest/gtest.h>

#include "calque/metrics/bleu.h"
#include "calque/metrics/ter.h"

namespace calque {
namespace {

// Statistics of TER: edits, words of the reference.
std::vector<Statistics> edits(const std::vector<double>& counts) {
  std::vector<Statistics> all;
  for (const double count : counts) all.push_back({count, 10});
  return all;
}

}  // namespace

TEST(Significance, AnExactTestTriesAllAssignments) {
  const auto metric = make_ter({});
  const auto p = [&](const std::vector<double>& baseline, const std::vector<double>& system) {
    return exact_randomisation(*metric, edits(baseline), edits(system));
  };
  EXPECT_EQ(p({1, 2, 3}, {0, 1, 0}), 2.0 / 8);  // of ±1 ±1 ±3 two are as far from 0 as 5
  EXPECT_EQ(p({0, 1, 0}, {1, 2, 3}), 2.0 / 8);
  EXPECT_EQ(p({4, 1, 1}, {0, 0, 2}), 6.0 / 8);  // of ±4 ±1 ±1 all but two are as far as 4
  EXPECT_EQ(p({1, 0}, {0, 1}), 1);
  EXPECT_EQ(p({5}, {2}), 1);
}

// The exact test of BLEU, which has ten statistics, is what the random one approaches.
TEST(Significance, RandomAssignmentsApproachTheExactTest) {
  const auto metric = make_bleu({});
  std::vector<Statistics> baseline, system;
  const std::vector<std::string> reference = {"the little cat sleeps in the big red house today"};
  const char* texts[] = {"the little cat sleeps in the house",
                         "a cat sleeps in the big red house today",
                         "the little cat sleeps in the big house",
                         "the little dog sleeps in the big red house",
                         "little cat sleeps in the big red house x",
                         "the cat is in the house today",
                         "the little cat sleeps today",
                         "the little cat sleeps in the big red house"};
  for (size_t i = 0; i < 8; ++i) {
    baseline.push_back(metric->count(texts[i], reference));
    system.push_back(metric->count(texts[(i * 3 + 1) % 8], reference));
    if (i % 3 == 0) system.back() = metric->count(reference[0], reference);
  }
  const double exact = exact_randomisation(*metric, baseline, system);
  EXPECT_GT(exact, 0.05);
  EXPECT_LT(exact, 0.95);
  EXPECT_NEAR(approximate_randomisation(*metric, baseline, system), exact, 0.02);
  // It is used where it takes no more trials than the random test.
  EXPECT_LE(1 << max_exact_sentences, default_trials);
  EXPECT_GT(2 << max_exact_sentences, default_trials);
}

TEST(Significance, AnIntervalLeavesOutAFortiethAtEitherEnd) {
  const auto metric = make_ter({});
  // Two sentences with 0 and 10 edits: a resample has 0, 50 or 100 %, with probabilities 1/4, 1/2, 1/4.
  const auto statistics = edits({0, 10});
  const Interval many = bootstrap_interval(*metric, statistics);
  EXPECT_EQ(many.low, 0);
  EXPECT_EQ(many.high, 100);
  EXPECT_EQ(many.half_width(), 50);
  EXPECT_NEAR(many.mean, 50, 4);
  EXPECT_EQ(Interval{}.low + Interval{}.high + Interval{}.mean, 0);
  // A single resample is its own interval.
  const Interval one = bootstrap_interval(*metric, edits({3, 3}), 1);
  EXPECT_NEAR(one.low, 30, 1e-5);
  EXPECT_NEAR(one.high, 30, 1e-5);
  EXPECT_NEAR(one.mean, 30, 1e-5);
}

TEST(Significance, SystemsThatDoNotDifferAreNotSignificant) {
  const auto metric = make_ter({});
  const auto same = edits({1, 2, 3, 4});
  EXPECT_EQ(paired_bootstrap(*metric, same, same, 99), 1.0 / 100);  // none of the differences is above 0
  EXPECT_EQ(approximate_randomisation(*metric, same, same, 99), 1.0 / 100);
}

}  // namespace calque

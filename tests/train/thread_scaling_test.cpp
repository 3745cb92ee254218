#include "calque/train/thread_scaling.h"

#include <gtest/gtest.h>

#include "calque/train/bench.h"

namespace calque {
namespace {

// 10 ms of products that divide by the threads, 1 ms of loss of which half does, 1 ms of waiting that does
// not.
TrainBenchRow measured(int64_t threads) {
  const auto n = static_cast<double>(threads);
  const std::map<std::string, double> seconds = {
      {"products", 0.010 / n}, {"loss", 0.0005 + 0.0005 / n}, {"waiting", 0.001}};
  double whole = 0;
  for (const auto& [part, spent] : seconds) whole += spent;
  TrainBenchRow row;
  row.precision = "float32";
  row.threads = threads;
  row.tokens_per_second = 1 / whole;
  for (const auto& [part, spent] : seconds) row.breakdown[part] = spent / whole;
  return row;
}

TEST(ThreadScaling, FindsTheSerialPartsAndPredictsOtherNumbersOfThreads) {
  for (const int64_t threads : {2, 6}) {
    const ThreadScaling scaling = fit_scaling(measured(1), measured(threads));
    EXPECT_NEAR(scaling.serial_share("products"), 0, 1e-9);
    EXPECT_NEAR(scaling.serial_share("loss"), 0.5 / 12, 1e-9);
    EXPECT_NEAR(scaling.serial_share("waiting"), 1.0 / 12, 1e-9);
    EXPECT_NEAR(scaling.serial_share(), 1.5 / 12, 1e-9);
    for (const int64_t other : scaling_threads)
      EXPECT_NEAR(scaling.tokens_per_second(other) / measured(other).tokens_per_second, 1, 1e-9) << other;
    EXPECT_NEAR(scaling.speedup(64), 12 / (1.5 + 10.5 / 64), 1e-9);
    EXPECT_NEAR(scaling.to_json()["speedup"]["64"].get<double>(), scaling.speedup(64), 1e-12);
  }
}

TEST(ThreadScaling, MoreThanLinearIsNotNegativelySerial) {
  TrainBenchRow fast = measured(2);
  fast.tokens_per_second *= 3;
  const ThreadScaling scaling = fit_scaling(measured(1), fast);
  EXPECT_EQ(scaling.serial_share(), 0);
  EXPECT_NEAR(scaling.speedup(8), 8, 1e-9);
}

TEST(ThreadScaling, TakesTheMostThreadsOfEachPrecisionWithNothingBesideThem) {
  TrainBenchRow busy = measured(4), half = measured(1);
  busy.busy = 1;
  half.precision = "bfloat16";
  TrainBenchRow wrong = measured(2);
  wrong.tokens_per_second /= 2;
  EXPECT_TRUE(fit_scaling({measured(2), measured(4)}).empty());  // none on one thread
  EXPECT_TRUE(fit_scaling({measured(1), busy, half}).empty());
  const auto all = fit_scaling({measured(1), wrong, measured(3), busy, half});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].precision, "float32");
  EXPECT_NEAR(all[0].serial_share(), 1.5 / 12, 1e-9);
}

}  // namespace
}  // namespace calque

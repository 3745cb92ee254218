#include "calque/train/part_times.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <chrono>
#include <memory>

namespace calque {

TEST(PartTimes, ProductsCountForThemselvesAndTheOptimizerForAllOfItsOwn) {
  const auto a = torch::randn({200, 200});
  const PartTimes times;
  {
    RECORD_USER_SCOPE("norms");
    torch::mm(a, a);
    (a + a).sum();
  }
  {
    RECORD_USER_SCOPE("optimizer");
    for (int i = 0; i < 20; ++i) {
      RECORD_USER_SCOPE("norms");
      torch::mm(a, a);
    }
  }
  const auto seconds = times.seconds();
  ASSERT_EQ(seconds.size(), 3U);  // what is inside the optimizer counts as the optimizer's alone
  for (const char* part : {"products", "norms", "optimizer"}) EXPECT_GT(seconds.at(part), 0) << part;
}

TEST(PartTimes, NoTimeCountsTwice) {
  const auto a = torch::randn({300, 300});
  const auto start = std::chrono::steady_clock::now();
  const PartTimes times;
  {
    RECORD_USER_SCOPE("attention");
    for (int i = 0; i < 10; ++i) {
      RECORD_USER_SCOPE("norms");
      a.view({9, 100, 100}).transpose(1, 2).contiguous();  // operations that call others
      torch::matmul(a, a);                                 // a product that calls another
    }
  }
  torch::mm(a, a);
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  double sum = 0;
  for (const auto& [part, seconds] : times.seconds()) {
    EXPECT_GE(seconds, 0) << part;
    sum += seconds;
  }
  EXPECT_EQ(times.seconds().size(), 3U);
  EXPECT_LE(sum, elapsed);
}

TEST(PartTimes, EachBeginsAnewAndCountsWhileItLivesOnly) {
  const auto a = torch::randn({50, 50});
  auto first = std::make_unique<PartTimes>();
  {
    RECORD_USER_SCOPE("optimizer");
    torch::mm(a, a);
    first.reset();  // in the middle of a part
  }
  { RECORD_USER_SCOPE("loss"); }
  const PartTimes second;
  EXPECT_TRUE(second.seconds().empty());
  { RECORD_USER_SCOPE("norms"); }
  ASSERT_EQ(second.seconds().size(), 1U);
  EXPECT_EQ(second.seconds().begin()->first, "norms");
}

}  // namespace calque

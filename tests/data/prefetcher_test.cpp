#include "calque/data/prefetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace calque {
namespace {

Batch numbered(int64_t number) {
  Batch batch;
  batch.tokens = {number};
  return batch;
}

}  // namespace

TEST(Prefetcher, ReturnsBatchesInOrderThenNullopt) {
  int64_t made = 0;
  Prefetcher prefetcher(
      [&]() -> std::optional<Batch> { return made < 100 ? std::optional(numbered(made++)) : std::nullopt; },
      3);
  for (int64_t i = 0; i < 100; ++i) {
    const auto batch = prefetcher.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->tokens[0], i);
  }
  EXPECT_FALSE(prefetcher.next());
  EXPECT_FALSE(prefetcher.next());
}

TEST(Prefetcher, RethrowsAnExceptionAfterTheFinishedBatches) {
  int64_t made = 0;
  Prefetcher prefetcher([&]() -> std::optional<Batch> {
    if (made == 2) throw std::runtime_error("disk gone");
    return numbered(made++);
  });
  EXPECT_TRUE(prefetcher.next());
  EXPECT_TRUE(prefetcher.next());
  EXPECT_THROW(prefetcher.next(), std::runtime_error);
}

TEST(Prefetcher, StopsWithBatchesLeftInTheQueue) {
  int64_t made = 0;
  {
    Prefetcher prefetcher([&]() -> std::optional<Batch> { return numbered(made++); }, 4);
    prefetcher.next();
  }
  EXPECT_LE(made, 6);  // at most one more than the queue holds
}

// One batch is made in advance of a full queue.
TEST(Prefetcher, MakesNoMoreThanTheQueueHolds) {
  const auto made_after = [](int taken, auto... ahead) {
    std::atomic<int64_t> made = 0;
    Prefetcher prefetcher([&]() -> std::optional<Batch> { return numbered(made++); }, ahead...);
    for (int i = 0; i < taken; ++i) prefetcher.next();
    int64_t before = -1;
    while (std::exchange(before, made) != made) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return made.load();
  };
  EXPECT_EQ(made_after(0, 3), 4);
  EXPECT_EQ(made_after(2, 3), 6);
  EXPECT_EQ(made_after(0), 9);
}

TEST(Prefetcher, MeasuresTheTimeSpentWaiting) {
  Prefetcher prefetcher([&]() -> std::optional<Batch> {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return numbered(0);
  });
  EXPECT_EQ(prefetcher.waited_seconds(), 0);
  prefetcher.next();
  EXPECT_GT(prefetcher.waited_seconds(), 0.01);
  EXPECT_LT(prefetcher.waited_seconds(), 10);
  const double once = prefetcher.waited_seconds();
  prefetcher.next();
  EXPECT_GE(prefetcher.waited_seconds(), once);
}

}  // namespace calque

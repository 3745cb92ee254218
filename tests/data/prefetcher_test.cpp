#include "calque/data/prefetcher.h"

#include <gtest/gtest.h>

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
  EXPECT_LE(made, 7);  // at most a few in advance
}

TEST(Prefetcher, MeasuresTheTimeSpentWaiting) {
  Prefetcher prefetcher([&]() -> std::optional<Batch> {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return numbered(0);
  });
  prefetcher.next();
  EXPECT_GT(prefetcher.waited_seconds(), 0.01);
}

}  // namespace calque

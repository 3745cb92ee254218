#include "calque/train/rank_prefetcher.h"

#include <gmock/gmock.h>

#include <chrono>

#include "distributed/ranks.h"

namespace calque {
namespace {

// A batch that takes some seconds of work on the processor.
Batch slow_batch(double seconds) {
  const auto started = std::chrono::steady_clock::now();
  volatile double x = 1;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count() < seconds)
    x = x * 1.0000001;
  return {};
}

TEST(RankPrefetcher, TheOthersWaitForABatchThatTakesLong) {
  run_ranks(2, [](ProcessGroup& group) {
    group.set_timeout(1);
    RankPrefetcher batches(group, [&] { return slow_batch(group.rank() == 1 ? 3 : 0); });
    batches.next();
    EXPECT_THAT(group.sum(std::vector<double>{1}), testing::ElementsAre(2));
  });
}

TEST(RankPrefetcher, TheOthersWaitForItsEnd) {
  run_ranks(2, [](ProcessGroup& group) {
    group.set_timeout(1);
    {
      const RankPrefetcher batches(group, [&] { return slow_batch(group.rank() == 1 ? 3 : 0); });
    }
    EXPECT_THAT(group.sum(std::vector<double>{1}), testing::ElementsAre(2));
  });
}

}  // namespace
}  // namespace calque

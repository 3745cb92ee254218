#include "calque/train/rank_bench.h"

#include <gmock/gmock.h>

#include <mutex>

#include "calque/kernels/threads.h"
#include "distributed/ranks.h"
#include "train/small_run.h"

namespace calque {

TEST(RankBench, EveryRankGetsTheCostsOfAll) {
  const TemporaryFolder folder;
  const int threads = num_threads();
  const RunConfig config = small_run(folder);
  TrainBenchOptions options;
  options.cache = folder / "cache";
  options.seconds = 0.1;
  options.threads = {1};
  std::mutex mutex;
  std::vector<RankBench> results;
  run_ranks(2, [&](ProcessGroup& group) {
    // A view: the group lives as long as the test's rank does.
    const auto shared = std::shared_ptr<ProcessGroup>(std::shared_ptr<void>(), &group);
    const RankBench result = bench_ranks(config, options, shared);
    const std::lock_guard lock(mutex);
    results.push_back(result);
  });
  set_num_threads(threads);
  ASSERT_EQ(results.size(), 2U);
  for (const RankBench& result : results) {
    ASSERT_EQ(result.ranks.size(), 2U);
    int64_t bytes = 0;
    for (size_t rank = 0; rank < 2; ++rank) {
      bytes += result.ranks[rank].optimizer_state_bytes;
      EXPECT_EQ(result.ranks[rank].optimizer_state_bytes, results[0].ranks[rank].optimizer_state_bytes);
      EXPECT_GT(result.ranks[rank].optimizer_seconds, 0);
      EXPECT_GT(result.ranks[rank].communication_seconds, 0);
    }
    EXPECT_NEAR(static_cast<double>(bytes), 8.0 * static_cast<double>(result.parameters),
                0.01 * static_cast<double>(bytes));  // AdamW: two moments of four bytes
    EXPECT_GT(result.tokens_per_second, 0);
    EXPECT_GT(result.step_seconds, 0);
    EXPECT_EQ(result.to_json()["ranks"].size(), 2U);
  }
}

}  // namespace calque

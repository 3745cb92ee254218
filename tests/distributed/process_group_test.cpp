#include "calque/distributed/process_group.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <mutex>

#include "calque/base/error.h"
#include "distributed/ranks.h"

namespace calque {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ProcessGroup, AWorldOfOneNeedsNoNetwork) {
  ProcessGroup group;
  EXPECT_THAT(group.sum(std::vector<double>{1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(group.gather("a"), ElementsAre("a"));
  EXPECT_EQ(group.broadcast("b"), "b");
  EXPECT_EQ(group.from_first([] { return "c"; }), "c");
  const torch::Tensor x = torch::ones({3});
  group.sum(x);
  group.broadcast(x);
  EXPECT_TRUE(torch::equal(group.gather(x), torch::ones({1, 3})));
}

TEST(ProcessGroup, SumsHaveTheSameBitsOnEveryRank) {
  std::mutex mutex;
  std::vector<torch::Tensor> sums;
  torch::Tensor expected = torch::zeros({1000}, torch::kFloat64);
  run_ranks(3, [&](ProcessGroup& group) {
    auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(group.rank()));
    torch::Tensor own = at::randn({1000}, generator, torch::kFloat32);
    const torch::Tensor kept = own.to(torch::kFloat64);
    group.sum(own);
    const std::lock_guard lock(mutex);
    expected += kept;
    sums.push_back(own);
  });
  EXPECT_TRUE(torch::equal(sums[0], sums[1]));
  EXPECT_TRUE(torch::equal(sums[0], sums[2]));
  EXPECT_LT((sums[0].to(torch::kFloat64) - expected).abs().max().item<double>(), 1e-6);
}

TEST(ProcessGroup, SumsBfloat16) {
  run_ranks(2, [](ProcessGroup& group) {
    const torch::Tensor x = torch::full({5}, 1.5 + group.rank(), torch::kBFloat16);
    group.sum(x);
    EXPECT_TRUE(torch::equal(x, torch::full({5}, 4.0, torch::kBFloat16)));
  });
}

TEST(ProcessGroup, TensorsAndTextsArriveByRank) {
  run_ranks(3, [](ProcessGroup& group) {
    const torch::Tensor all = group.gather(torch::full({2}, group.rank(), torch::kInt64));
    EXPECT_TRUE(torch::equal(all, torch::tensor({{0, 0}, {1, 1}, {2, 2}})));
    EXPECT_THAT(group.gather(std::string(static_cast<size_t>(group.rank()), 'x')),
                ElementsAre("", "x", "xx"));
    EXPECT_EQ(group.broadcast(group.rank() == 2 ? "of two" : "no", 2), "of two");
    EXPECT_EQ(group.broadcast(group.rank() == 0 ? "" : "no"), "");
    torch::Tensor x = torch::full({4}, group.rank());
    group.broadcast(x, 1);
    EXPECT_EQ(x.sum().item<int64_t>(), 4);
    if (group.rank() == 2) group.send(torch::full({3}, 7), 0);
    if (group.rank() == 0) {
      const torch::Tensor received = torch::zeros({3}, torch::kInt64);
      group.receive(received, 2);
      EXPECT_EQ(received.sum().item<int64_t>(), 21);
    }
  });
}

TEST(ProcessGroup, AnErrorOnOneRankIsThrownOnAll) {
  run_ranks(3, [](ProcessGroup& group) {
    try {
      group.everywhere([&] {
        if (group.rank() == 1) throw UserError("no such file", "look for it");
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr("no such file"));
      EXPECT_EQ(error.help(), "look for it");
      EXPECT_EQ(std::string(error.what()).starts_with("rank 1 ("), group.rank() != 1);
    }
    EXPECT_THROW(group.from_first([]() -> std::string { throw std::runtime_error("broken"); }),
                 std::runtime_error);
    EXPECT_EQ(group.from_first([] { return "fine"; }), "fine");
  });
}

TEST(ProcessGroup, TheFirstOfAMachineWorksBeforeItsOthers) {
  std::mutex mutex;
  std::vector<int> order;
  run_ranks(3, [&](ProcessGroup& group) {
    group.everywhere_in_turn([&] {
      const std::lock_guard lock(mutex);
      order.push_back(group.rank());
    });
  });
  EXPECT_EQ(order.size(), 3);
  EXPECT_EQ(order.front(), 0);
}

TEST(ProcessGroup, ARankThatDoesNotAnswerIsNoticedWithinTheTimeout) {
  run_ranks(2, [](ProcessGroup& group) {
    group.set_timeout(0.3);
    if (group.rank() == 1) return;  // and takes its connections with it
    EXPECT_THROW(group.sum(std::vector<double>{1}), RankLost);
  });
}

TEST(ProcessGroup, AnAddressWithoutAServerIsRefused) {
  EXPECT_THROW(ProcessGroup({.rank = 0, .size = 2, .address = "no.such.host.invalid", .port = 1}), UserError);
}

}  // namespace
}  // namespace calque

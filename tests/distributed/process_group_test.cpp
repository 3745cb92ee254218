#include "calque/distributed/process_group.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <mutex>
#include <sstream>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

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

// More elements than one message has, and not a multiple.
TEST(ProcessGroup, LargeTensorsArriveInSeveralMessages) {
  const int64_t count = 2 * elements_per_message(2) + elements_per_message(2) / 2 + 3;
  run_ranks(2, [&](ProcessGroup& group) {
    const torch::Tensor expected = torch::arange(count, torch::kFloat32).remainder(1009);
    const torch::Tensor own = group.is_first() ? expected.clone() : torch::zeros({count});
    group.broadcast(own);
    EXPECT_TRUE(own.equal(expected));
    group.sum(own);
    EXPECT_TRUE(own.equal(2 * expected));
    if (group.is_first()) return group.send(own.view({1, count}), 1);
    const torch::Tensor received = torch::zeros({1, count});
    group.receive(received, 0);
    EXPECT_TRUE(received.view(-1).equal(own));
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

// Seconds of work on the processor.
void work_for(double seconds) {
  const auto started = std::chrono::steady_clock::now();
  volatile double x = 1;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count() < seconds)
    x = x * 1.0000001;
}

TEST(ProcessGroup, AMainThreadThatHangsIsNamedThoughItsHeartBeats) {
  run_ranks(3, [](ProcessGroup& group) {
    group.set_timeout(1);
    group.barrier();
    if (group.rank() == 1) return std::this_thread::sleep_for(std::chrono::seconds(7));
    try {
      group.barrier();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const RankLost& error) {
      if (group.rank() == 0) {
        EXPECT_THAT(error.what(), HasSubstr("lost rank 1 ("));
        EXPECT_THAT(error.what(), HasSubstr("): no progress for 1 seconds"));
      }
    }
  });
}

TEST(ProcessGroup, LongWorkIsWaitedForWhileItGoesOn) {
  run_ranks(2, [](ProcessGroup& group) {
    group.set_timeout(2);
    group.everywhere([&] {
      if (group.rank() == 1) work_for(5);
    });
    {
      const ProcessGroup::OutsideWait waiting(group);
      if (group.rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(5));
    }
    EXPECT_THAT(group.sum(std::vector<double>{1}), ElementsAre(2));
    if (group.rank() == 0) {
      const ProcessGroup::OutsideWait waiting(group);
      std::this_thread::sleep_for(std::chrono::seconds(5));
      group.send(torch::ones({2}), 1);
    } else {
      const torch::Tensor received = torch::zeros({2});
      group.receive(received, 0);
      EXPECT_EQ(received.sum().item<double>(), 2);
    }
  });
}

TEST(ProcessGroup, LongWorkThatStandsStillIsNot) {
  run_ranks(2, [](ProcessGroup& group) {
    group.set_timeout(1);
    group.barrier();
    const auto sleep = [&] {
      if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(6));
    };
    EXPECT_THROW(group.everywhere(sleep), RankLost);
  });
}

std::string problem(const World& world, const Claims& claims = {}) {
  try {
    const ProcessGroup group(world, claims);
  } catch (const UserError& error) {
    return error.what();
  } catch (const RankLost& error) {
    return std::string("lost: ") + error.what();
  }
  return "";
}

TEST(ProcessGroup, CommandsAreComparedBeforeAnythingElse) {
  run_worlds(3, [](const World& world) {
    EXPECT_THAT(problem(world, {{"command", world.rank == 2 ? "evaluate" : "translate"}}),
                testing::AllOf(testing::StartsWith("command: translate on rank 0 ("),
                               HasSubstr("), but evaluate on rank 2 (")));
  });
  run_worlds(2, [](const World& world) {
    EXPECT_THAT(problem(world, world.rank == 1 ? Claims{} : Claims{{"command", "train"}}),
                HasSubstr(", but nothing on rank 1 ("));
  });
}

TEST(ProcessGroup, RanksThatDoNotComeAreNamed) {
  run_worlds(3, [](World world) {
    world.start_seconds = 1;
    if (world.rank == 1) return;
    EXPECT_EQ(problem(world), "lost: 1 of 3 processes did not come within 1 seconds: rank 1");
  });
}

TEST(ProcessGroup, TwoJobsAtOnePortDoNotMix) {
  run_worlds(2, [](World world) {
    world.start_seconds = 2;
    world.token = world.rank == 0 ? "mine" : "theirs";
    EXPECT_THAT(problem(world), HasSubstr(world.rank == 0 ? "did not come" : "another job listens at"));
  });
}

// torchrun's agents count the restarts of their own machine, and keep the store over restarts.
TEST(ProcessGroup, RestartsThatWereCountedDifferentlyMeet) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(unused_port());
  options.isServer = true;
  options.waitWorkers = false;
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  const auto attempt = [&](const std::vector<int>& restarts, bool first_comes) {
    run_worlds(2, [&](World world) {
      world.port = options.port;
      world.has_agent = true;
      world.restarts = restarts[static_cast<size_t>(world.rank)];
      world.start_seconds = first_comes ? 20 : 1;
      if (world.is_first() && !first_comes) return;
      if (!first_comes) {
        EXPECT_THAT(problem(world), HasSubstr("cannot reach rank 0"));
        return;
      }
      ProcessGroup group(world);
      EXPECT_EQ(group.world().restarts, std::max(restarts[0], restarts[1]));
      EXPECT_THAT(group.gather(std::to_string(group.rank())), ElementsAre("0", "1"));
    });
  };
  attempt({0, 0}, true);
  attempt({1, 0}, false);  // rank 0 dies before it joins
  attempt({1, 0}, true);
  attempt({1, 2}, true);
}

TEST(ProcessGroup, CountsTheProcessesOfEachMachine) {
  run_worlds(3, [](World world) {
    world.local_rank = 0;
    world.local_size = 1;  // nobody said how many there are
    const ProcessGroup group(world);
    EXPECT_EQ(group.world().local_rank, group.rank());
    EXPECT_EQ(group.world().local_size, 3);
  });
}

TEST(ProcessGroup, KeepsTheAddressAtWhichRankZeroIsReached) {
  run_worlds(2, [](World world) {
    world.address = "localhost";
    ProcessGroup group(world);
    EXPECT_EQ(group.world().address, group.broadcast(group.world().address));
    EXPECT_THAT(group.world().address, testing::AnyOf("127.0.0.1", "::1"));
    EXPECT_EQ(group.timeout_seconds(), world.timeout_seconds);
    group.set_timeout(5);
    EXPECT_EQ(group.timeout_seconds(), 5);
  });
}

TEST(ProcessGroup, RankZeroListensOnLoopbackAlone) {
  run_ranks(2, [](ProcessGroup& group) {
    const std::string port = fmt::format(":{:04X} ", group.world().port);
    std::vector<std::string> listening;
    for (const char* file : {"/proc/net/tcp", "/proc/net/tcp6"}) {
      std::ifstream table(file);
      for (std::string line; std::getline(table, line);) {
        std::istringstream words(line);
        std::string number, local, remote, state;
        words >> number >> local >> remote >> state;
        if (state == "0A" && (local + " ").ends_with(port)) listening.push_back(local);
      }
    }
    EXPECT_THAT(listening, ElementsAre(fmt::format("0100007F:{:04X}", group.world().port)));
    group.barrier();
  });
}

// The names of machines that have just started may appear later, that of rank 0's own among them.
TEST(ProcessGroup, ANameThatIsNotKnownIsWaitedForAndThenRefused) {
  for (const int rank : {0, 1}) {
    const auto started = std::chrono::steady_clock::now();
    EXPECT_THROW(
        ProcessGroup(
            {.rank = rank, .size = 2, .address = "no.such.host.invalid", .port = 1, .start_seconds = 0.5}),
        UserError);
    EXPECT_GT(std::chrono::steady_clock::now() - started, std::chrono::milliseconds(500)) << rank;
  }
}

}  // namespace
}  // namespace calque

#include "calque/decode/request_queue.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace calque {
namespace {

// Requests 0 … count - 1; never more than `at_once` are there without waiting.
NextRequest numbers(int64_t count, int64_t at_once, int64_t& given, int64_t& waits) {
  return [count, at_once, &given, &waits](bool wait) -> std::optional<SearchRequest> {
    if (given == count || (!wait && given % at_once == 0)) return std::nullopt;
    waits += wait;
    return SearchRequest{given++, {7}};
  };
}

}  // namespace

TEST(RequestQueue, LooksAheadAsFarAsThereIsSomethingAndKeepsTheOrder) {
  int64_t given = 0, waits = 0;
  const NextRequest next = numbers(10, 4, given, waits);
  const RequestDone done = [](int64_t, const std::vector<Hypothesis>&) {};
  const RequestProgress progress;
  RequestQueue queue(next, done, progress);
  EXPECT_EQ(queue.look_ahead(3), 3);
  EXPECT_EQ(queue.look_ahead(100), 4);
  EXPECT_EQ(waits, 1);
  for (int64_t id = 0; id < 4; ++id) EXPECT_EQ(queue.next()->id, id);
  EXPECT_FALSE(queue.next());
  EXPECT_EQ(queue.look_ahead(100), 4);
  EXPECT_EQ(queue.next()->id, 4);
  queue.stop();
  EXPECT_FALSE(queue.next());
}

TEST(RequestQueue, EndsWhenItIsEmptyAndFewAreInProgressUntilOneLooksAhead) {
  int64_t given = 0, available = 0;
  const NextRequest next = [&](bool wait) -> std::optional<SearchRequest> {
    if (!wait && available == 0) return std::nullopt;
    available -= !wait;
    return SearchRequest{given++, {7}};
  };
  const RequestDone done = [](int64_t, const std::vector<Hypothesis>&) {};
  const RequestProgress progress;
  RequestQueue queue(next, done, progress);
  available = 2;
  EXPECT_EQ(queue.look_ahead(5), 3);
  queue.end_when_fewer_than(3);
  for (int64_t id = 0; id < 3; ++id) EXPECT_EQ(queue.next()->id, id);
  EXPECT_FALSE(queue.next());  // empty, but three are in progress: it goes on
  available = 1;
  EXPECT_EQ(queue.next()->id, 3);
  queue.done(0, {});
  queue.done(1, {});
  EXPECT_FALSE(queue.next());  // empty with two in progress: it ends
  available = 1;
  EXPECT_FALSE(queue.next());
  EXPECT_EQ(queue.look_ahead(5), 2);
  EXPECT_TRUE(queue.next());
}

TEST(RequestQueue, EndsWhenMoreCouldBeInProgressThanTheLimit) {
  int64_t given = 0;
  const NextRequest next = [&](bool) { return std::optional(SearchRequest{given++, {7}}); };
  const RequestDone done = [](int64_t, const std::vector<Hypothesis>&) {};
  const RequestProgress cancel = [](int64_t, std::span<const int32_t>) { return false; };
  RequestQueue queue(next, done, cancel);
  EXPECT_EQ(queue.look_ahead(1), 1);
  queue.end_when_more_than(2);
  EXPECT_EQ(queue.next()->id, 0);
  EXPECT_EQ(queue.next()->id, 1);
  EXPECT_FALSE(queue.progress(1, {}));  // cancelled: it counts no more
  EXPECT_EQ(queue.next()->id, 2);
  EXPECT_FALSE(queue.next());
  queue.done(0, {});
  EXPECT_FALSE(queue.next());  // until one looks ahead
  EXPECT_EQ(queue.look_ahead(1), 1);
  EXPECT_EQ(queue.next()->id, 3);
}

TEST(RequestQueue, EveryRequestReachesOneWorkerAndItsResultComesBackAlone) {
  int64_t given = 0, waits = 0;
  const NextRequest next = numbers(5000, 10'000, given, waits);
  std::set<int64_t> seen;  // no lock of its own: results come one at a time
  const RequestDone done = [&](int64_t id, const std::vector<Hypothesis>&) {
    EXPECT_TRUE(seen.insert(id).second);
  };
  const RequestProgress progress;
  RequestQueue queue(next, done, progress);
  ASSERT_EQ(queue.look_ahead(10), 10);
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (const auto request = queue.next()) queue.done(request->id, {});
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(seen.size(), 5000U);
}

}  // namespace calque

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
  RequestQueue queue(next, done);
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

TEST(RequestQueue, WhatHasRunDryStaysSoUntilOneLooksAhead) {
  int64_t given = 0;
  bool more = false;
  const NextRequest next = [&](bool wait) -> std::optional<SearchRequest> {
    return wait || more ? std::optional(SearchRequest{given++, {7}}) : std::nullopt;
  };
  const RequestDone done = [](int64_t, const std::vector<Hypothesis>&) {};
  RequestQueue queue(next, done);
  for (const bool ends : {false, true}) {
    more = false;
    EXPECT_EQ(queue.look_ahead(5), 1);
    if (ends) queue.end_when_empty();
    EXPECT_TRUE(queue.next());
    EXPECT_FALSE(queue.next());
    more = true;
    EXPECT_EQ(queue.next().has_value(), !ends);
  }
}

TEST(RequestQueue, EveryRequestReachesOneWorkerAndItsResultComesBackAlone) {
  int64_t given = 0, waits = 0;
  const NextRequest next = numbers(5000, 10'000, given, waits);
  std::set<int64_t> seen;  // no lock of its own: results come one at a time
  const RequestDone done = [&](int64_t id, const std::vector<Hypothesis>&) {
    EXPECT_TRUE(seen.insert(id).second);
  };
  RequestQueue queue(next, done);
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

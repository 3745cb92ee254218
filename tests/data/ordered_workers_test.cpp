#include "calque/data/ordered_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>

namespace calque {

TEST(OrderedWorkers, ItemsComeBackInOrderWhoeverIsFasterFirst) {
  OrderedWorkers<int> workers(3, [](int& item, size_t worker) {
    ASSERT_LT(worker, 3U);
    std::this_thread::sleep_for(std::chrono::microseconds(item % 5 * 300));
    item *= 2;
  });
  std::vector<int> taken;
  for (int i = 0; i < 40; ++i) {
    workers.submit(i);
    if (workers.size() > 6) taken.push_back(workers.take());
  }
  EXPECT_EQ(workers.size(), 6U);
  while (workers.size() > 0) taken.push_back(workers.take());
  ASSERT_EQ(taken.size(), 40U);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(taken[static_cast<size_t>(i)], 2 * i);
}

TEST(OrderedWorkers, AnErrorIsThrownInItsPlace) {
  OrderedWorkers<int> workers(2, [](int& item, size_t) {
    if (item == 1) throw std::runtime_error("one");
  });
  for (int i = 0; i < 3; ++i) workers.submit(i);
  EXPECT_EQ(workers.take(), 0);
  EXPECT_THROW(workers.take(), std::runtime_error);
  EXPECT_EQ(workers.take(), 2);
}

TEST(OrderedWorkers, TheirEndDropsWhatNobodyBeganWith) {
  std::atomic<int> begun = 0;
  {
    OrderedWorkers<int> workers(1, [&](int&, size_t) {
      ++begun;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    });
    for (int i = 0; i < 100; ++i) workers.submit(i);
    workers.take();
  }
  EXPECT_LT(begun, 100);
}

}  // namespace calque

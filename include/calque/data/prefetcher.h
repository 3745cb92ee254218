// Prefetcher: makes batches on a thread of its own, a few ahead, so that training never waits for data.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "calque/data/batch.h"

namespace calque {

class Prefetcher {
 public:
  // `make` gives the next batch each time it is called, or nothing when there are no more.
  explicit Prefetcher(std::function<std::optional<Batch>()> make, size_t ahead = 8);
  ~Prefetcher();

  // The next batch, or nothing after the last. An exception of `make` comes out here.
  std::optional<Batch> next();
  double waited_seconds() const { return waited_seconds_; }  // in next(), since the beginning

 private:
  void work();

  std::function<std::optional<Batch>()> make_;
  size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr failure_;
  bool finished_ = false;
  bool stopping_ = false;
  double waited_seconds_ = 0;
  std::thread thread_;
};

}  // namespace calque

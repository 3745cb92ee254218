// Prefetcher: makes batches in a background thread, so that training does not wait for data.
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
  // Each call of `make` returns the next batch, or nullopt at the end. At most `ahead` batches are queued.
  explicit Prefetcher(std::function<std::optional<Batch>()> make, size_t ahead = 8);
  ~Prefetcher();

  // The next batch, or nullopt after the last one. Rethrows an exception of `make`.
  std::optional<Batch> next();
  double waited_seconds() const { return waited_seconds_; }  // total waiting time in next()

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

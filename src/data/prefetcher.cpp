#include "calque/data/prefetcher.h"

#include <chrono>

namespace calque {

Prefetcher::Prefetcher(std::function<std::optional<Batch>()> make, size_t ahead)
    : make_(std::move(make)), ahead_(ahead), thread_([this] { work(); }) {}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::work() {
  for (;;) {
    std::optional<Batch> batch;
    std::exception_ptr failure;
    try {
      batch = make_();
    } catch (...) {
      failure = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    if (!batch) {
      failure_ = failure;
      finished_ = true;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return ready_.size() < ahead_ || stopping_; });
    if (stopping_) return;
    ready_.push_back(std::move(*batch));
    changed_.notify_all();
  }
}

std::optional<Batch> Prefetcher::next() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || finished_; });
  waited_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return std::nullopt;
  }
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

}  // namespace calque

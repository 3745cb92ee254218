// OrderedWorkers: threads that each work on one item at a time; the items come back in the order in which
// they were submitted.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace calque {

template <class Item>
class OrderedWorkers {
 public:
  // `worker` (0 … threads - 1) says which thread it is, for what each keeps to itself.
  using Work = std::function<void(Item& item, size_t worker)>;

  OrderedWorkers(size_t threads, Work work) : work_(std::move(work)) {
    for (size_t worker = 0; worker < threads; ++worker)
      threads_.emplace_back([this, worker] { run(worker); });
  }

  // Waits for the items that are being worked on; those after them are dropped.
  ~OrderedWorkers() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    submitted_.notify_all();
    threads_.clear();  // joins
  }

  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;

  void submit(Item item) {
    {
      const std::lock_guard lock(mutex_);
      slots_.push_back(std::make_unique<Slot>(std::move(item)));
    }
    submitted_.notify_one();
  }

  // The oldest item, once it is done. Throws what its work has thrown.
  Item take() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return slots_.front()->is_done; });
    const std::unique_ptr<Slot> slot = std::move(slots_.front());
    slots_.pop_front();
    --begun_;
    lock.unlock();
    if (slot->failure) std::rethrow_exception(slot->failure);
    return std::move(slot->item);
  }

  // Items that were submitted and not taken. For the thread that does both.
  size_t size() const { return slots_.size(); }

 private:
  struct Slot {
    explicit Slot(Item own) : item(std::move(own)) {}
    Item item;
    bool is_done = false;
    std::exception_ptr failure = {};
  };

  void run(size_t worker) {
    std::unique_lock lock(mutex_);
    for (;;) {
      submitted_.wait(lock, [this] { return is_ending_ || begun_ < slots_.size(); });
      if (is_ending_) return;
      Slot& slot = *slots_[begun_++];
      lock.unlock();
      try {
        work_(slot.item, worker);
      } catch (...) {
        slot.failure = std::current_exception();
      }
      lock.lock();
      slot.is_done = true;
      finished_.notify_all();
    }
  }

  Work work_;
  std::mutex mutex_;
  std::condition_variable submitted_, finished_;
  std::deque<std::unique_ptr<Slot>> slots_;  // oldest first
  size_t begun_ = 0;                         // of them, from the oldest on
  bool is_ending_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace calque

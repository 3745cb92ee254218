// ThreadPool: threads that take units of work as they become free. OpenMP's static shares wait for every
// thread, also for one that another program keeps from running; here the caller waits only for units that
// have been begun, and threads that wait soon sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>

namespace calque {

class ThreadPool {
 public:
  using Unit = std::function<void(int64_t)>;

  // Runs units 0 … count - 1 on the calling thread and on at most `threads` - 1 others. Serial inside a unit
  // of this or an OpenMP region, and while another thread uses the pool. Rethrows the first exception of a
  // unit.
  void run(int64_t count, int64_t threads, const Unit& unit);

 private:
  // A number that one thread waits for. Its own flag says whether the thread sleeps: the standard library's
  // own count of sleepers is shared by all that are aligned like this, and would call the system every time.
  // A place of its own in memory for each, so that threads which write do not slow down those that read
  // others.
  struct alignas(64) Counter {
    std::atomic<uint32_t> value = 0;
    std::atomic<bool> is_awaited = false;

    void wait_while(uint32_t old);  // sleeps until the value has changed
    void wake();                    // after a change
  };

  void work(int64_t index, Counter& regions);
  void take_units();
  void add_workers(int64_t count);

  std::mutex caller_;                          // one region at a time
  std::deque<Counter> regions_;                // of each worker: changes when it is wanted
  std::atomic<bool> is_open_ = false;          // whether workers may begin units of the region
  Counter inside_;                             // workers that may be running units
  alignas(64) std::atomic<int64_t> next_ = 0;  // the next unit
  alignas(64) std::atomic<bool> has_failed_ = false;
  // Written before a region is opened, read by workers inside it.
  const Unit* unit_ = nullptr;
  int64_t count_ = 0, helpers_ = 0;
  std::exception_ptr error_;
};

// While it lives, LibTorch's operations on this thread use no other threads.
class SingleThreadedLibTorch {
 public:
  SingleThreadedLibTorch();
  ~SingleThreadedLibTorch();
  SingleThreadedLibTorch(const SingleThreadedLibTorch&) = delete;
  SingleThreadedLibTorch& operator=(const SingleThreadedLibTorch&) = delete;

 private:
  int openmp_threads_ = 0, mkl_threads_ = 0;
};

}  // namespace calque

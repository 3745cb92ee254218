#include "calque/kernels/thread_pool.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Of the libraries that LibTorch was built with: OpenMP's and MKL's numbers of threads for the calling
// thread. Not every build has both.
extern "C" {
__attribute__((weak)) int omp_get_max_threads();  // mutate: a declaration
__attribute__((weak)) void omp_set_num_threads(int threads);
__attribute__((weak)) int MKL_Set_Num_Threads_Local(int threads);
}

namespace calque {
namespace {

// How long a thread that waits keeps its core before it sleeps. Regions follow each other within
// microseconds.
constexpr std::chrono::microseconds spin_time{50};  // mutate: speed only

thread_local bool is_in_unit = false;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

template <class Ready>
bool spin_until(const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + spin_time;  // mutate: speed only
  do {
    for (int i = 0; i < 32; ++i, pause()) {  // mutate: speed only
      if (ready()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);  // mutate: speed only
  return false;
}

}  // namespace

void ThreadPool::Counter::wait_while(uint32_t old) {
  is_awaited = true;
  if (value == old) value.wait(old);
  is_awaited = false;
}

void ThreadPool::Counter::wake() {
  if (is_awaited) value.notify_one();
}

void ThreadPool::run(int64_t count, int64_t threads, const Unit& unit) {
  std::unique_lock<std::mutex> lock(caller_, std::defer_lock);
  if (count <= 1 || threads <= 1 || is_in_unit || at::in_parallel_region() ||
      !spin_until([&] { return lock.try_lock(); })) {
    for (int64_t i = 0; i < count; ++i) unit(i);
    return;
  }
  const SingleThreadedLibTorch guard;
  const int64_t wanted = std::min(count, threads) - 1;
  add_workers(wanted);
  unit_ = &unit;
  count_ = count;
  helpers_ = std::min(wanted, static_cast<int64_t>(regions_.size()));
  has_failed_ = false;
  next_ = 0;
  is_open_ = true;
  for (int64_t i = 0; i < helpers_; ++i) {
    Counter& region = regions_[static_cast<size_t>(i)];
    ++region.value;
    region.wake();
  }
  is_in_unit = true;
  take_units();
  is_in_unit = false;
  // A worker first says that it is inside, then looks whether the region is open; here it is the other way
  // round. So either the worker sees that it is closed, or it is waited for.
  is_open_ = false;
  while (!spin_until([&] { return inside_.value == 0; })) {
    if (const uint32_t workers = inside_.value; workers != 0) inside_.wait_while(workers);
  }
  if (has_failed_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::take_units() {
  for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) {
    try {
      (*unit_)(i);
    } catch (...) {
      if (!has_failed_.exchange(true)) error_ = std::current_exception();
      next_ = count_;
    }
  }
}

void ThreadPool::work(int64_t index, Counter& regions) {
  // Made inside a region, whose caller waits: a process that ends could not stand LibTorch being set up
  // meanwhile.
  std::optional<SingleThreadedLibTorch> single_threaded;
  is_in_unit = true;
  for (uint32_t seen = 0;;) {
    if (!spin_until([&] { return regions.value != seen; })) regions.wait_while(seen);
    seen = regions.value;
    if (!is_open_) continue;
    ++inside_.value;
    if (is_open_ && index < helpers_) {  // it may be a later region, with fewer helpers
      if (!single_threaded) single_threaded.emplace();
      take_units();
    }
    --inside_.value;
    inside_.wake();
  }
}

// Workers live as long as the process: nothing of what they use may be destroyed before. Where the system
// gives no more threads, fewer do the work.
void ThreadPool::add_workers(int64_t count) {
  while (static_cast<int64_t>(regions_.size()) < count) {
    Counter& regions = regions_.emplace_back();
    try {
      std::thread(&ThreadPool::work, this, static_cast<int64_t>(regions_.size()) - 1, std::ref(regions))
          .detach();
    } catch (const std::system_error&) {
      regions_.pop_back();
      return;
    }
  }
}

// A thread's first question for its number of threads sets it, so it comes before anything that sets it
// otherwise.
SingleThreadedLibTorch::SingleThreadedLibTorch() {
  at::get_num_threads();
  if (omp_set_num_threads != nullptr) {
    openmp_threads_ = omp_get_max_threads();
    omp_set_num_threads(1);
  }
  if (MKL_Set_Num_Threads_Local != nullptr) mkl_threads_ = MKL_Set_Num_Threads_Local(1);
}

SingleThreadedLibTorch::~SingleThreadedLibTorch() {
  if (omp_set_num_threads != nullptr) omp_set_num_threads(openmp_threads_);
  if (MKL_Set_Num_Threads_Local != nullptr) MKL_Set_Num_Threads_Local(mkl_threads_);
}

}  // namespace calque

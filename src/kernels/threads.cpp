#include "calque/kernels/threads.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace calque {

void set_num_threads(int64_t threads) {
  at::set_num_threads(threads > 0 ? static_cast<int>(threads)
                                  : static_cast<int>(std::thread::hardware_concurrency()));
}

int num_threads() { return at::get_num_threads(); }

void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 30);                          // mutate: speed only
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());  // mutate: speed only
#endif
}

void parallel_dynamic(int64_t count, int64_t threads, const std::function<void(int64_t unit)>& run) {
  std::atomic<int64_t> next = 0;
  at::parallel_for(0, std::clamp<int64_t>(count, 1, threads), 1, [&](int64_t, int64_t) {
    for (int64_t unit; (unit = next.fetch_add(1, std::memory_order_relaxed)) < count;) run(unit);
  });
}

bool has_bfloat16_instructions() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

}  // namespace calque

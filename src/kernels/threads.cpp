#include "calque/kernels/threads.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>

#include "calque/kernels/thread_pool.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace calque {

void set_num_threads(int64_t threads, int processes) {
  at::set_num_threads(threads > 0 ? static_cast<int>(threads) : std::max(1, available_cores() / processes));
}

int num_threads() { return at::in_parallel_region() ? 1 : at::get_num_threads(); }  // mutate: speed only

void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 30);                          // mutate: speed only
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());  // mutate: speed only
#endif
}

void parallel_units(int64_t count, int64_t threads, const std::function<void(int64_t unit)>& run) {
  static ThreadPool& pool = *new ThreadPool;  // never destroyed: its threads live as long as the process
  pool.run(count, threads, run);
}

void parallel_rows(int64_t rows, int64_t rows_per_task,
                   const std::function<void(int64_t begin, int64_t end)>& run) {
  parallel_units((rows + rows_per_task - 1) / rows_per_task, num_threads(), [&](int64_t unit) {
    run(unit * rows_per_task, std::min(rows, (unit + 1) * rows_per_task));
  });
}

bool has_bfloat16_instructions() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
#else
  return false;
#endif
}

bool has_unused_avx512() {
#if defined(__x86_64__)
  return has_avx512() && __builtin_cpu_is("intel") == 0;
#else
  return false;
#endif
}

}  // namespace calque

#include "calque/kernels/threads.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include "calque/kernels/thread_pool.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace calque {

namespace {

// Of cgroup v2 ("max 100000" or "150000 100000") or v1; infinity without one.
double cpu_limit() {
  double quota = -1, period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period && quota > 0) return quota / period;
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
      v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (v1_quota >> quota && v1_period >> period && quota > 0 && period > 0) return quota / period;
  return std::numeric_limits<double>::infinity();
}

}  // namespace

int available_cores() {
  const double cores = std::max(1u, std::thread::hardware_concurrency());  // respects the affinity mask
  return static_cast<int>(std::ceil(std::min(cores, cpu_limit())));
}

void set_num_threads(int64_t threads, int processes) {
  at::set_num_threads(threads > 0 ? static_cast<int>(threads) : std::max(1, available_cores() / processes));
}

int num_threads() { return at::get_num_threads(); }

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

}  // namespace calque

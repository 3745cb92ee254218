#include "calque/kernels/threads.h"

#include <ATen/Parallel.h>

#include <thread>

namespace calque {

void use_threads(int64_t threads) {
  at::set_num_threads(threads > 0 ? static_cast<int>(threads)
                                  : static_cast<int>(std::thread::hardware_concurrency()));
}

bool fast_bfloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

}  // namespace calque

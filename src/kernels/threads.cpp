#include "calque/kernels/threads.h"

#include <ATen/Parallel.h>

#include <thread>

namespace calque {

void use_threads(int64_t threads) {
  at::set_num_threads(threads > 0 ? static_cast<int>(threads)
                                  : static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace calque

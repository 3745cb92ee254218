// Threads, memory allocation and CPU features of this process.
#pragma once

#include <cstdint>
#include <functional>

namespace calque {

void set_num_threads(int64_t threads);  // 0: all cores
int num_threads();

// Keeps freed memory in the process instead of returning it to the system, which would zero every page
// again. For training, which allocates the same tensors in every step.
void keep_freed_memory();

// Runs units 0 … count - 1 on at most `threads` threads with dynamic scheduling: each thread takes the next
// unit when it has finished one.
void parallel_dynamic(int64_t count, int64_t threads, const std::function<void(int64_t unit)>& run);

bool has_bfloat16_instructions();  // AVX-512 BF16

}  // namespace calque

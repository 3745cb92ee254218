// What everything runs on: the process's threads and memory, and what the processor can do.
#pragma once

#include <cstdint>
#include <functional>

namespace calque {

void use_threads(int64_t threads);  // 0: all cores

// For training, whose tensors come and go alike in every step: from here on the process keeps what it frees,
// instead of giving it back to the system and getting it again page by page, filled with zeros.
void keep_freed_memory();

// Runs units 0 … count - 1 on at most so many threads. Each takes the next one when it is done with its own,
// so that none waits long for another that was held up or had the longer ones.
void deal_out(int64_t count, int64_t threads, const std::function<void(int64_t unit)>& run);

bool fast_bfloat16();  // whether the processor has instructions for products of such numbers

}  // namespace calque

// What everything below runs on: the process's threads, and what the processor can do.
#pragma once

#include <cstdint>

namespace calque {

void use_threads(int64_t threads);  // 0: all cores

bool fast_bfloat16();  // whether the processor has instructions for products of such numbers

}  // namespace calque

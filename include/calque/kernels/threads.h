// The processor threads that everything below runs on, for the whole process.
#pragma once

#include <cstdint>

namespace calque {

void use_threads(int64_t threads);  // 0: all cores

}  // namespace calque

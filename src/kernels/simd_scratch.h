// Scratch: memory for one unit of work, from a buffer that each thread keeps and that only grows.
#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>
#include <cstdint>

namespace calque::simd {

class Scratch {
 public:
  explicit Scratch(size_t floats) {
    thread_local Buffer buffer;
    const size_t wanted = floats + slack;
    if (buffer.size < wanted) {
      buffer.data = hwy::AllocateAligned<float>(wanted);
      buffer.size = wanted;
    }
    next_ = buffer.data.get();
  }
  // Pieces begin at whole cache lines; `slack` covers the rounding of a dozen of them.
  float* take(int64_t floats) {
    float* piece = next_;
    next_ += (floats + 15) / 16 * 16;
    return piece;
  }

 private:
  static constexpr size_t slack = 16 * 16;
  struct Buffer {
    hwy::AlignedFreeUniquePtr<float[]> data;
    size_t size = 0;
  };
  float* next_;
};

}  // namespace calque::simd

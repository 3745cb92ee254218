// Scratch: temporary memory for one unit of work, from a per-thread buffer that only grows.
#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>
#include <cstdint>

namespace calque::simd {

class Scratch {
 public:
  explicit Scratch(size_t floats) {
    thread_local Buffer buffer;
    const size_t needed = floats + slack;
    if (buffer.size < needed) {
      buffer.data = hwy::AllocateAligned<float>(needed);
      buffer.size = needed;
    }
    next_ = buffer.data.get();
  }
  // Pieces are aligned to cache lines (16 floats); `slack` covers the rounding of up to 16 pieces.
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

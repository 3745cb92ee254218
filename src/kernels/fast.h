// What the fast versions of the kernels share, and the one place that decides what runs where.
#pragma once

#include <torch/types.h>

namespace calque {

bool are_portable_kernels_forced();

// Whether the fast versions can take a tensor: 32-bit floats on the CPU. Everything else takes the portable
// versions, or LibTorch's own where it has a single operation for it.
inline bool is_fast(const torch::Tensor& x) {
  return x.device().is_cpu() && x.scalar_type() == torch::kFloat32 && !are_portable_kernels_forced();
}

}  // namespace calque

// What the fast versions of the kernels share.
#pragma once

#include <torch/types.h>

namespace calque {

// Whether the fast versions can take a tensor: 32-bit floats on the CPU. Everything else takes the reference.
inline bool is_fast(const torch::Tensor& x) {
  return x.device().is_cpu() && x.scalar_type() == torch::kFloat32;
}

}  // namespace calque

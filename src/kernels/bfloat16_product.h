// Products of bfloat16 matrices on processors with instructions for them: sums and results in float32.
#pragma once

#include <torch/types.h>

namespace calque {

// Whether bfloat16_product_into can multiply a [rows, inner] by b [inner, columns].
bool can_multiply_bfloat16(const torch::Tensor& a, const torch::Tensor& b);

// out [rows, columns], float32 with contiguous rows, is overwritten, or added to. Each sum has one order, so
// the result has the same bits for any number of threads.
void bfloat16_product_into(const torch::Tensor& out, const torch::Tensor& a, const torch::Tensor& b,
                           bool add);

}  // namespace calque

// Matrix products by our own AVX-512 loops, with sums and results in float32. For float32 where LibTorch's
// library would not use AVX-512, for bfloat16 on processors with instructions for it.
#pragma once

#include <torch/types.h>

namespace calque {

// Whether avx512_product_into can multiply a [rows, inner] by b [inner, columns], and should.
bool prefers_avx512_product(const torch::Tensor& a, const torch::Tensor& b);

// out [rows, columns], float32 with contiguous rows, is overwritten, or added to. Each sum has one order, so
// the result has the same bits for any number of threads.
void avx512_product_into(const torch::Tensor& out, const torch::Tensor& a, const torch::Tensor& b, bool add);

}  // namespace calque

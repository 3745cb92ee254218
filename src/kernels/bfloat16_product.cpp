#include "bfloat16_product.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "calque/kernels/threads.h"
#include "simd_loops.h"

namespace calque {
namespace {

using torch::Tensor;

// Multiplications of a block, which one thread computes: few, so that threads finish at the same time; many,
// so that it is reused from the cache.
constexpr int64_t block_multiplications = 1 << 25;  // mutate: speed only

const uint16_t* data(const Tensor& x) { return reinterpret_cast<const uint16_t*>(x.const_data_ptr()); }

int64_t divide(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Pairs of neighbours along the inner dimension, for a matrix [inner, count].
Tensor pack(const Tensor& given, int64_t panel_width) {
  const int64_t inner = given.size(0), count = given.size(1), panels = divide(count, panel_width);
  const bool in_rows = given.stride(1) == 1 || count == 1;
  const bool transposed = !in_rows && given.stride(0) == 1 && inner % 2 == 0;
  const Tensor x = in_rows || transposed ? given : given.contiguous();
  const Tensor packed =
      torch::empty({panels, divide(inner, 2), panel_width}, x.options().dtype(torch::kInt32));
  const simd::PairPacking work{data(x),     transposed ? x.stride(1) : x.stride(0),
                               inner,       count,
                               panel_width, reinterpret_cast<uint32_t*>(packed.mutable_data_ptr<int32_t>())};
  constexpr int64_t panels_per_task = 4;  // mutate: speed only
  parallel_rows(panels, panels_per_task, [&](int64_t begin, int64_t end) {
    (transposed ? simd::pack_pairs_transposed : simd::pack_pairs)(work, begin, end);
  });
  return packed;
}

struct Blocks {
  int64_t rows, panels;  // of a block; rows in units of pair_rows
};

// Halves the longer side of a block until it has few enough multiplications.
Blocks block_size(int64_t rows, int64_t inner, int64_t columns) {
  Blocks block{divide(rows, simd::pair_rows), divide(columns, simd::pair_columns)};
  for (;;) {
    const int64_t high = block.rows * simd::pair_rows, wide = block.panels * simd::pair_columns;
    if (high * wide * inner <= block_multiplications) return block;                   // mutate: speed only
    int64_t& longer = high >= wide || block.panels == 1 ? block.rows : block.panels;  // mutate: speed only
    if (longer == 1) return block;                                                    // mutate: speed only
    longer = divide(longer, 2);                                                       // mutate: speed only
  }
}

}  // namespace

bool can_multiply_bfloat16(const Tensor& a, const Tensor& b) {
  return has_bfloat16_instructions() && a.is_cpu() && a.scalar_type() == torch::kBFloat16 &&
         b.scalar_type() == torch::kBFloat16;
}

void bfloat16_product_into(const Tensor& out, const Tensor& a, const Tensor& b, bool add) {
  const int64_t rows = out.size(0), columns = out.size(1), inner = a.size(1);
  // Where neighbours lie side by side, a is used as it is.
  const bool is_paired = a.stride(1) == 1 && inner % 2 == 0 && (a.stride(0) % 2 == 0 || rows == 1);
  const Tensor pairs = is_paired ? a : pack(a.t(), simd::pair_rows);
  const Tensor panels = pack(b, simd::pair_columns);
  const simd::Bfloat16Work work{static_cast<const uint32_t*>(pairs.const_data_ptr()),
                                /*a_is_packed=*/!is_paired,
                                is_paired ? a.stride(0) / 2 : 0,
                                reinterpret_cast<const uint32_t*>(panels.const_data_ptr<int32_t>()),
                                divide(inner, 2),
                                columns,
                                out.mutable_data_ptr<float>(),
                                out.stride(0),
                                add};
  const Blocks block = block_size(rows, inner, columns);
  const int64_t height = block.rows * simd::pair_rows, across = divide(panels.size(0), block.panels);
  parallel_units(divide(rows, height) * across, num_threads(), [&](int64_t unit) {
    const int64_t row = unit / across * height, panel = unit % across * block.panels;
    simd::bfloat16_product(work, row, std::min(rows, row + height), panel,
                           std::min(panels.size(0), panel + block.panels));
  });
}

}  // namespace calque

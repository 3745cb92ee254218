#include "avx512_product.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "calque/kernels/threads.h"
#include "simd_loops.h"

namespace calque {
namespace {

using torch::Tensor;

// Multiplications of a block, which one thread computes: few, so that threads finish at the same time; many,
// so that it is reused from the cache. A product is divided into blocks_per_thread blocks per thread, but not
// into blocks below fewest_multiplications.
constexpr int64_t most_multiplications = 1 << 25, fewest_multiplications = 1 << 21;  // mutate: speed only
constexpr int64_t blocks_per_thread = 4;                                             // mutate: speed only

constexpr int64_t word_bytes = sizeof(uint32_t);

int64_t divide(int64_t count, int64_t size) { return (count + size - 1) / size; }

// How many neighbours along the inner dimension are one word.
int64_t values_per_word(const Tensor& x) { return word_bytes / x.element_size(); }

// Panels of words for a matrix [inner, count].
Tensor pack(const Tensor& given, int64_t panel_width) {
  const int64_t inner = given.size(0), count = given.size(1), panels = divide(count, panel_width);
  const int64_t values = values_per_word(given), words = divide(inner, values);
  const bool in_rows = given.stride(1) == 1 || count == 1;
  const bool transposed = !in_rows && given.stride(0) == 1 && inner % values == 0;
  const Tensor x = in_rows || transposed ? given : given.contiguous();
  const Tensor packed = torch::empty({panels, words, panel_width}, x.options().dtype(torch::kInt32));
  const simd::WordPacking work{
      x.const_data_ptr(), (transposed ? x.stride(1) : x.stride(0)) * x.element_size(),    inner, words, count,
      panel_width,        reinterpret_cast<uint32_t*>(packed.mutable_data_ptr<int32_t>())};
  const auto run = transposed    ? simd::pack_transposed_words
                   : values == 1 ? simd::pack_words
                                 : simd::pack_pairs;
  constexpr int64_t panels_per_task = 2;  // mutate: speed only
  parallel_rows(panels, panels_per_task, [&](int64_t begin, int64_t end) { run(work, begin, end); });
  return packed;
}

struct Blocks {
  int64_t rows, panels;  // of a block; rows in units of panel_rows
};

// Halves the longer side of a block until it has few enough multiplications.
Blocks block_size(int64_t rows, int64_t inner, int64_t columns, int64_t threads) {
  const int64_t limit =
      std::clamp(rows * inner * columns / (blocks_per_thread * threads),  // mutate: speed only
                 fewest_multiplications, most_multiplications);           // mutate: speed only
  Blocks block{divide(rows, simd::panel_rows), divide(columns, simd::panel_columns)};
  for (;;) {
    const int64_t high = block.rows * simd::panel_rows, wide = block.panels * simd::panel_columns;
    if (high * wide * inner <= limit) return block;                                   // mutate: speed only
    int64_t& longer = high >= wide || block.panels == 1 ? block.rows : block.panels;  // mutate: speed only
    if (longer == 1) return block;                                                    // mutate: speed only
    longer = divide(longer, 2);                                                       // mutate: speed only
  }
}

}  // namespace

bool prefers_avx512_product(const Tensor& a, const Tensor& b) {
  if (!a.is_cpu() || a.scalar_type() != b.scalar_type()) return false;
  return a.scalar_type() == torch::kBFloat16 ? has_bfloat16_instructions()
                                             : a.scalar_type() == torch::kFloat32 && has_unused_avx512();
}

void avx512_product_into(const Tensor& out, const Tensor& a, const Tensor& b, bool add) {
  const int64_t rows = out.size(0), columns = out.size(1), inner = a.size(1), values = values_per_word(a);
  // Where the values of a word lie side by side, a is used as it is.
  const bool has_words = a.stride(1) == 1 && inner % values == 0 && (a.stride(0) % values == 0 || rows == 1);
  const Tensor words = has_words ? a : pack(a.t(), simd::panel_rows);
  const Tensor panels = pack(b, simd::panel_columns);
  const simd::Avx512Work work{static_cast<const uint32_t*>(words.const_data_ptr()),
                              /*a_is_packed=*/!has_words,
                              has_words ? a.stride(0) / values : 0,
                              reinterpret_cast<const uint32_t*>(panels.const_data_ptr<int32_t>()),
                              divide(inner, values),
                              columns,
                              out.mutable_data_ptr<float>(),
                              out.stride(0),
                              add};
  const auto multiply = values == 1 ? simd::float32_product : simd::bfloat16_product;
  const int64_t threads = num_threads();
  const Blocks block = block_size(rows, inner, columns, threads);
  const int64_t height = block.rows * simd::panel_rows, across = divide(panels.size(0), block.panels);
  parallel_units(divide(rows, height) * across, threads, [&](int64_t unit) {
    const int64_t row = unit / across * height, panel = unit % across * block.panels;
    multiply(work, row, std::min(rows, row + height), panel, std::min(panels.size(0), panel + block.panels));
  });
}

}  // namespace calque

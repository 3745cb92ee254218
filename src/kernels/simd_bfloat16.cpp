// Products of bfloat16 operands by the AVX-512 BF16 instructions. They multiply pairs of neighbours along the
// inner dimension and add both products to a sum in float32. Highway 1.0 has no operation for them, so these
// are the compiler's own intrinsics, for this one instruction set.
#include <algorithm>

#include "simd_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))), \
                             apply_to = function)
#else
#pragma GCC diagnostic ignored "-Wuninitialized"        // false alarms in the intrinsics' own header:
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC bug 105593
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")
#endif

namespace calque::simd {
namespace {

constexpr int lanes = 16, vectors = pair_columns / lanes;
constexpr int tile_rows = 12;           // with two vectors of columns, as many sums as fit into the registers
constexpr int64_t pairs_at_once = 192;  // of a panel, which stays in the cache; sums go to memory in between
static_assert(pair_rows % tile_rows == 0);

// The first `count` lanes.
__mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(count, 0, lanes)) - 1);
}

// Rows `row` … of `out`, columns `column` …; `pairs` of the inner dimension.
template <int rows, bool a_is_packed>
void multiply_tile(const Bfloat16Work& w, const uint32_t* a, const uint32_t* b, int64_t pairs, float* out,
                   int64_t columns, bool add) {
  const __mmask16 masks[vectors] = {first_lanes(columns), first_lanes(columns - lanes)};
  __m512 sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v)
      sums[r][v] =
          add ? _mm512_maskz_loadu_ps(masks[v], out + r * w.out_stride + v * lanes) : _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < pairs; ++k) {
    __m512bh values[vectors];
    for (int v = 0; v < vectors; ++v)
      values[v] = (__m512bh)_mm512_loadu_si512(b + k * pair_columns + v * lanes);
    for (int r = 0; r < rows; ++r) {
      const auto pair = static_cast<int>(a_is_packed ? a[k * pair_rows + r] : a[r * w.a_stride + k]);
      const auto factor = (__m512bh)_mm512_set1_epi32(pair);
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], factor, values[v]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v)
      _mm512_mask_storeu_ps(out + r * w.out_stride + v * lanes, masks[v], sums[r][v]);
  }
}

// A tile of `count` ≤ `rows` rows: the number has to be known at compile time.
template <int rows, bool a_is_packed>
void run_tile(const Bfloat16Work& w, const uint32_t* a, const uint32_t* b, int64_t pairs, float* out,
              int64_t columns, bool add, int64_t count) {
  if (count == rows) return multiply_tile<rows, a_is_packed>(w, a, b, pairs, out, columns, add);
  if constexpr (rows > 1) run_tile<rows - 1, a_is_packed>(w, a, b, pairs, out, columns, add, count);
}

template <bool a_is_packed>
void run_block(const Bfloat16Work& w, int64_t row_begin, int64_t row_end, int64_t panel_begin,
               int64_t panel_end) {
  for (int64_t pair = 0; pair < w.pairs; pair += pairs_at_once) {
    const int64_t pairs = std::min(pairs_at_once, w.pairs - pair);
    for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
      const uint32_t* b = w.b + (panel * w.pairs + pair) * pair_columns;
      const int64_t column = panel * pair_columns, columns = std::min(pair_columns, w.columns - column);
      for (int64_t row = row_begin; row < row_end; row += tile_rows) {
        const uint32_t* a = a_is_packed
                                ? w.a + (row / pair_rows * w.pairs + pair) * pair_rows + row % pair_rows
                                : w.a + row * w.a_stride + pair;
        run_tile<tile_rows, a_is_packed>(w, a, b, pairs, w.out + row * w.out_stride + column, columns,
                                         w.add || pair > 0, std::min<int64_t>(tile_rows, row_end - row));
      }
    }
  }
}

// Transposes 16 × 16 pairs in registers: first 2 × 2 blocks of single pairs, then of 2, of 4 and of 8.
void transpose(__m512i (&rows)[lanes]) {
  __m512i next[lanes];
  for (int i = 0; i < lanes; i += 2) {
    next[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    next[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < lanes; i += 4) {
    for (int j = 0; j < 2; ++j) {
      rows[i + 2 * j] = _mm512_unpacklo_epi64(next[i + j], next[i + j + 2]);
      rows[i + 2 * j + 1] = _mm512_unpackhi_epi64(next[i + j], next[i + j + 2]);
    }
  }
  for (int i = 0; i < lanes; i += 8) {
    for (int j = 0; j < 4; ++j) {
      next[i + j] = _mm512_shuffle_i32x4(rows[i + j], rows[i + j + 4], 0x88);
      next[i + j + 4] = _mm512_shuffle_i32x4(rows[i + j], rows[i + j + 4], 0xDD);
    }
  }
  for (int j = 0; j < 8; ++j) {
    rows[j] = _mm512_shuffle_i32x4(next[j], next[j + 8], 0x88);
    rows[j + 8] = _mm512_shuffle_i32x4(next[j], next[j + 8], 0xDD);
  }
}

}  // namespace

void pack_pairs(const PairPacking& p, int64_t panel_begin, int64_t panel_end) {
  const int64_t pairs = (p.inner + 1) / 2;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    for (int64_t k = 0; k < pairs; ++k) {
      const uint16_t* first = p.from + 2 * k * p.stride;
      uint32_t* to = p.to + (panel * pairs + k) * p.panel_width;
      for (int64_t c = 0; c < p.panel_width; c += lanes) {
        const int64_t column = panel * p.panel_width + c;
        const __mmask16 mask = first_lanes(p.count - column);
        const __mmask16 second = 2 * k + 1 < p.inner ? mask : static_cast<__mmask16>(0);
        const auto low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, first + column));
        const auto high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(second, first + p.stride + column));
        _mm512_storeu_si512(to + c, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
      }
    }
  }
}

void pack_pairs_transposed(const PairPacking& p, int64_t panel_begin, int64_t panel_end) {
  const int64_t pairs = p.inner / 2;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    for (int64_t c = 0; c < p.panel_width; c += lanes) {
      for (int64_t k = 0; k < pairs; k += lanes) {
        const __mmask16 mask = first_lanes(pairs - k);
        __m512i rows[lanes];
        for (int64_t i = 0; i < lanes; ++i) {
          const int64_t column = panel * p.panel_width + c + i;
          rows[i] = _mm512_maskz_loadu_epi32(column < p.count ? mask : static_cast<__mmask16>(0),
                                             p.from + std::min(column, p.count - 1) * p.stride + 2 * k);
        }
        transpose(rows);
        for (int64_t i = 0; i < std::min<int64_t>(lanes, pairs - k); ++i)
          _mm512_storeu_si512(p.to + (panel * pairs + k + i) * p.panel_width + c, rows[i]);
      }
    }
  }
}

void bfloat16_product(const Bfloat16Work& work, int64_t row_begin, int64_t row_end, int64_t panel_begin,
                      int64_t panel_end) {
  (work.a_is_packed ? run_block<true> : run_block<false>)(work, row_begin, row_end, panel_begin, panel_end);
}

}  // namespace calque::simd

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else  // no such instructions, so never called

namespace calque::simd {

void pack_pairs(const PairPacking&, int64_t, int64_t) {}
void pack_pairs_transposed(const PairPacking&, int64_t, int64_t) {}
void bfloat16_product(const Bfloat16Work&, int64_t, int64_t, int64_t, int64_t) {}

}  // namespace calque::simd

#endif

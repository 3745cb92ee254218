// Products by AVX-512 instructions, of words along the inner dimension: a float32, or a pair of bfloat16,
// whose two products the AVX-512 BF16 instructions add to a sum in float32. Highway 1.0 has no operation for
// these, so this is written with the compiler's own intrinsics. Processors without BF16 run all but
// bfloat16_product.
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

constexpr int lanes = 16, vectors = panel_columns / lanes;
constexpr int tile_rows = 12;           // with two vectors of columns, as many sums as fit into the registers
constexpr int64_t words_at_once = 256;  // of a panel, which stays in the cache; sums go to memory in between
static_assert(panel_rows % tile_rows == 0);

struct Float32 {
  static __m512 multiply_add(__m512 sum, __m512i a, __m512i b) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
  }
};
struct Bfloat16Pair {
  static __m512 multiply_add(__m512 sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
};

// The first `count` lanes.
__mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(count, 0, lanes)) - 1);
}

// Rows `row` … of `out`, columns `column` …; `words` of the inner dimension.
template <class Word, int rows, bool a_is_packed>
void multiply_tile(const Avx512Work& w, const uint32_t* a, const uint32_t* b, int64_t words, float* out,
                   int64_t columns, bool add) {
  const __mmask16 masks[vectors] = {first_lanes(columns), first_lanes(columns - lanes)};
  __m512 sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v)
      sums[r][v] =
          add ? _mm512_maskz_loadu_ps(masks[v], out + r * w.out_stride + v * lanes) : _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < words; ++k) {
    __m512i values[vectors];
    for (int v = 0; v < vectors; ++v) values[v] = _mm512_loadu_si512(b + k * panel_columns + v * lanes);
    for (int r = 0; r < rows; ++r) {
      const auto word = static_cast<int>(a_is_packed ? a[k * panel_rows + r] : a[r * w.a_stride + k]);
      const __m512i factor = _mm512_set1_epi32(word);
      for (int v = 0; v < vectors; ++v) sums[r][v] = Word::multiply_add(sums[r][v], factor, values[v]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v)
      _mm512_mask_storeu_ps(out + r * w.out_stride + v * lanes, masks[v], sums[r][v]);
  }
}

// A tile of `count` ≤ `rows` rows: the number has to be known at compile time.
template <class Word, int rows, bool a_is_packed>
void run_tile(const Avx512Work& w, const uint32_t* a, const uint32_t* b, int64_t words, float* out,
              int64_t columns, bool add, int64_t count) {
  if (count == rows) return multiply_tile<Word, rows, a_is_packed>(w, a, b, words, out, columns, add);
  if constexpr (rows > 1) run_tile<Word, rows - 1, a_is_packed>(w, a, b, words, out, columns, add, count);
}

template <class Word, bool a_is_packed>
void run_block(const Avx512Work& w, int64_t row_begin, int64_t row_end, int64_t panel_begin,
               int64_t panel_end) {
  for (int64_t word = 0; word < w.words; word += words_at_once) {
    const int64_t words = std::min(words_at_once, w.words - word);
    for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
      const uint32_t* b = w.b + (panel * w.words + word) * panel_columns;
      const int64_t column = panel * panel_columns, columns = std::min(panel_columns, w.columns - column);
      for (int64_t row = row_begin; row < row_end; row += tile_rows) {
        const uint32_t* a = a_is_packed
                                ? w.a + (row / panel_rows * w.words + word) * panel_rows + row % panel_rows
                                : w.a + row * w.a_stride + word;
        run_tile<Word, tile_rows, a_is_packed>(w, a, b, words, w.out + row * w.out_stride + column, columns,
                                               w.add || word > 0,
                                               std::min<int64_t>(tile_rows, row_end - row));
      }
    }
  }
}

template <class Word>
void run(const Avx512Work& work, int64_t row_begin, int64_t row_end, int64_t panel_begin, int64_t panel_end) {
  (work.a_is_packed ? run_block<Word, true> : run_block<Word, false>)(work, row_begin, row_end, panel_begin,
                                                                      panel_end);
}

// Transposes 16 × 16 words in registers: first 2 × 2 blocks of single words, then of 2, of 4 and of 8.
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

void pack_words(const WordPacking& p, int64_t panel_begin, int64_t panel_end) {
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    for (int64_t k = 0; k < p.words; ++k) {
      const auto* from =
          reinterpret_cast<const uint32_t*>(static_cast<const char*>(p.from) + k * p.row_bytes);
      uint32_t* to = p.to + (panel * p.words + k) * p.panel_width;
      for (int64_t c = 0; c < p.panel_width; c += lanes) {
        const int64_t column = panel * p.panel_width + c;
        _mm512_storeu_si512(to + c, _mm512_maskz_loadu_epi32(first_lanes(p.count - column), from + column));
      }
    }
  }
}

void pack_pairs(const WordPacking& p, int64_t panel_begin, int64_t panel_end) {
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    for (int64_t k = 0; k < p.words; ++k) {
      const char* row = static_cast<const char*>(p.from) + 2 * k * p.row_bytes;
      const auto* first = reinterpret_cast<const uint16_t*>(row);
      const auto* second = reinterpret_cast<const uint16_t*>(row + p.row_bytes);
      uint32_t* to = p.to + (panel * p.words + k) * p.panel_width;
      for (int64_t c = 0; c < p.panel_width; c += lanes) {
        const int64_t column = panel * p.panel_width + c;
        const __mmask16 mask = first_lanes(p.count - column);
        const __mmask16 second_mask = 2 * k + 1 < p.inner ? mask : static_cast<__mmask16>(0);
        const auto low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, first + column));
        const auto high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(second_mask, second + column));
        _mm512_storeu_si512(to + c, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
      }
    }
  }
}

void pack_transposed_words(const WordPacking& p, int64_t panel_begin, int64_t panel_end) {
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    for (int64_t c = 0; c < p.panel_width; c += lanes) {
      for (int64_t k = 0; k < p.words; k += lanes) {
        const __mmask16 mask = first_lanes(p.words - k);
        __m512i rows[lanes];
        for (int64_t i = 0; i < lanes; ++i) {
          const int64_t column = panel * p.panel_width + c + i;
          const char* from = static_cast<const char*>(p.from) + std::min(column, p.count - 1) * p.row_bytes;
          rows[i] = _mm512_maskz_loadu_epi32(column < p.count ? mask : static_cast<__mmask16>(0),
                                             from + k * static_cast<int64_t>(sizeof(uint32_t)));
        }
        transpose(rows);
        for (int64_t i = 0; i < std::min<int64_t>(lanes, p.words - k); ++i)
          _mm512_storeu_si512(p.to + (panel * p.words + k + i) * p.panel_width + c, rows[i]);
      }
    }
  }
}

void float32_product(const Avx512Work& work, int64_t row_begin, int64_t row_end, int64_t panel_begin,
                     int64_t panel_end) {
  run<Float32>(work, row_begin, row_end, panel_begin, panel_end);
}
void bfloat16_product(const Avx512Work& work, int64_t row_begin, int64_t row_end, int64_t panel_begin,
                      int64_t panel_end) {
  run<Bfloat16Pair>(work, row_begin, row_end, panel_begin, panel_end);
}

}  // namespace calque::simd

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else  // no such instructions, so never called

namespace calque::simd {

void pack_words(const WordPacking&, int64_t, int64_t) {}
void pack_pairs(const WordPacking&, int64_t, int64_t) {}
void pack_transposed_words(const WordPacking&, int64_t, int64_t) {}
void float32_product(const Avx512Work&, int64_t, int64_t, int64_t, int64_t) {}
void bfloat16_product(const Avx512Work&, int64_t, int64_t, int64_t, int64_t) {}

}  // namespace calque::simd

#endif

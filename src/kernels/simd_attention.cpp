// Inner loops of flat attention: tiles with an online softmax, as in FlashAttention (Dao et al., 2022).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd_attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "simd_attention-inl.h"
#include "simd_loops.h"
#include "simd_scratch.h"

HWY_BEFORE_NAMESPACE();
namespace calque::simd::HWY_NAMESPACE {
// Queries and rows are processed in tiles of this many, so that the operands of a product stay in the L1 and
// L2 caches for any sequence length.
constexpr int64_t tile = 64;
constexpr int block_rows = 6,
              block_vectors = 2;  // mutate: speed only; of a product: the sums just fit into the registers

// A matrix in scratch memory, rows padded to whole vectors.
struct Matrix {
  float* data;
  int64_t stride;
  float* row(int64_t i) const { return data + i * stride; }
  Matrix from(int64_t i) const { return {row(i), stride}; }
};

enum class Operand { plain, transposed };  // how the first operand of a product is stored

// The part of the depth (inner dimension) that a product sums over.
struct Range {
  int64_t begin, end;
};

template <Operand a_stored, int rows, int vectors>
HWY_INLINE void product_block(const Matrix& a, int64_t i, const Matrix& b, int64_t j, Range depth,
                              const Matrix& c, bool add) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v)
      sums[r][v] = add ? hn::LoadU(d, c.row(i + r) + j + v * lanes) : hn::Zero(d);
  }
  const float* factors = a_stored == Operand::plain ? a.row(i) + depth.begin : a.row(depth.begin) + i;
  const float* values = b.row(depth.begin) + j;
  for (int64_t p = depth.begin; p < depth.end;
       ++p, values += b.stride, factors += a_stored == Operand::plain ? 1 : a.stride) {
    Vector value[vectors];
    for (int v = 0; v < vectors; ++v) value[v] = hn::LoadU(d, values + v * lanes);
    for (int r = 0; r < rows; ++r) {
      const Vector factor = hn::Set(d, factors[a_stored == Operand::plain ? r * a.stride : r]);
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(factor, value[v], sums[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[r][v], d, c.row(i + r) + j + v * lanes);
  }
}

// A block of min(count, rows) rows: product_block needs the number at compile time.
template <Operand a_stored, int rows, int vectors>
HWY_INLINE void product_rows(const Matrix& a, int64_t i, int64_t count, const Matrix& b, int64_t j,
                             Range depth, const Matrix& c, bool add) {
  if (count >= rows) return product_block<a_stored, rows, vectors>(a, i, b, j, depth, c, add);
  if constexpr (rows > 1) product_rows<a_stored, rows - 1, vectors>(a, i, count, b, j, depth, c, add);
}

// c [rows, columns] = a [rows, depth] · b [depth, columns], or += if `add`. With Operand::transposed `a` is
// stored as [depth, rows]. Columns are rounded up to whole vectors. Masked entries are skipped: first_row(j)
// is the first row that needs columns from j on, depth_of(i, n) the part of the depth that the n rows from i
// on need.
template <Operand a_stored, class FirstRow, class DepthOf>
HWY_INLINE void product(const Matrix& a, int64_t rows, const Matrix& b, int64_t columns, const Matrix& c,
                        bool add, const FirstRow& first_row, const DepthOf& depth_of) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t j = 0;
  for (; j + lanes < columns; j += block_vectors * lanes) {
    for (int64_t i = first_row(j); i < rows; i += block_rows) {
      const Range depth = depth_of(i, std::min<int64_t>(block_rows, rows - i));
      product_rows<a_stored, block_rows, block_vectors>(a, i, rows - i, b, j, depth, c, add);
    }
  }
  for (; j < columns; j += lanes) {
    for (int64_t i = first_row(j); i < rows; i += block_rows) {
      const Range depth = depth_of(i, std::min<int64_t>(block_rows, rows - i));
      product_rows<a_stored, block_rows, 1>(a, i, rows - i, b, j, depth, c, add);
    }
  }
}

// The attention mask of one tile of queries and one tile of rows: query i attends to the first columns[i]
// rows. columns never decreases from one query to the next.
struct TileMask {
  int64_t queries;
  int64_t columns[tile];

  // The first query that attends to a column; `queries` if none does.
  int64_t first_query_for(int64_t column) const {
    int64_t i = 0;
    while (i < queries && columns[i] <= column) ++i;
    return i;
  }
};

// scores [queries, columns] = queries [queries, width] · rows_transposed [width, columns]. The backward pass
// also uses it for the gradients of the weights.
HWY_NOINLINE void score_product(const TileMask& mask, const Matrix& queries, int64_t width,
                                const Matrix& rows_transposed, int64_t columns, const Matrix& scores) {
  product<Operand::plain>(
      queries, mask.queries, rows_transposed, columns, scores, false,
      [&](int64_t j) { return mask.first_query_for(j); },
      [&](int64_t, int64_t) {
        return Range{0, width};
      });
}

// sums [queries, width] += weights [queries, rows] · rows [rows, width].
HWY_NOINLINE void weighted_sum(const TileMask& mask, const Matrix& weights, const Matrix& rows, int64_t width,
                               const Matrix& sums) {
  product<Operand::plain>(
      weights, mask.queries, rows, width, sums, true, [&](int64_t) { return mask.first_query_for(0); },
      [&](int64_t i, int64_t n) {
        return Range{0, mask.columns[i + n - 1]};
      });
}

// sums [rows, width] += weightsᵀ [rows, queries] · queries [queries, width].
HWY_NOINLINE void transposed_weighted_sum(const TileMask& mask, const Matrix& weights, int64_t rows,
                                          const Matrix& queries, int64_t width, const Matrix& sums) {
  product<Operand::transposed>(
      weights, rows, queries, width, sums, true, [](int64_t) { return int64_t{0}; },
      [&](int64_t i, int64_t) {
        return Range{mask.first_query_for(i), mask.queries};
      });
}

// to [columns, rows] = fromᵀ, from: [rows, columns]; rows are padded with zeros to whole vectors.
inline void transpose(const Matrix& from, int64_t rows, int64_t columns, const Matrix& to) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  const auto low = [&](auto a, auto b) {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto high = [&](auto a, auto b) {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const int64_t whole_columns = columns / 4 * 4;
  for (; i + 4 <= rows; i += 4) {
    for (int64_t j = 0; j < whole_columns; j += 4) {
      const auto r0 = hn::LoadU(d, from.row(i) + j), r1 = hn::LoadU(d, from.row(i + 1) + j),
                 r2 = hn::LoadU(d, from.row(i + 2) + j), r3 = hn::LoadU(d, from.row(i + 3) + j);
      const auto front = hn::InterleaveLower(d, r0, r1), back = hn::InterleaveLower(d, r2, r3),
                 upper_front = hn::InterleaveUpper(d, r0, r1), upper_back = hn::InterleaveUpper(d, r2, r3);
      hn::StoreU(low(front, back), d, to.row(j) + i);
      hn::StoreU(high(front, back), d, to.row(j + 1) + i);
      hn::StoreU(low(upper_front, upper_back), d, to.row(j + 2) + i);
      hn::StoreU(high(upper_front, upper_back), d, to.row(j + 3) + i);
    }
    for (int64_t j = whole_columns; j < columns; ++j) {
      for (int64_t k = 0; k < 4; ++k) to.row(j)[i + k] = from.row(i + k)[j];
    }
  }
#endif
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to.row(j)[i] = from.row(i)[j];
  }
  for (int64_t j = 0; j < columns; ++j) std::fill(to.row(j) + rows, to.row(j) + padded(rows), 0.0F);
}

// The rows, queries and prefix of one pair.
struct Pair {
  Pair(const AttentionWork& w, int64_t index)
      : first_row(w.offsets[index]),
        rows(w.offsets[index + 1] - first_row),
        first_query(w.query_offsets[index]),
        queries(w.query_offsets[index + 1] - first_query),
        prefix(w.prefix_ends[index] - first_row) {}
  // The number of rows that a query attends to, from the first row of the pair on.
  int64_t visible(int64_t query) const { return std::max(rows - queries + query + 1, prefix); }
  int64_t query_row(int64_t query) const { return first_row + rows - queries + query; }
  // The mask of `count` queries on the tile of rows that begins at `row`.
  TileMask tile_mask(int64_t query, int64_t count, int64_t row) const {
    TileMask mask{count, {}};
    for (int64_t i = 0; i < count; ++i)
      mask.columns[i] = std::clamp<int64_t>(visible(query + i) - row, 0, std::min(tile, rows - row));
    return mask;
  }

  int64_t first_row, rows, first_query, queries, prefix;
};

// Copies rows with RoPE applied, times a factor; pads them with zeros up to the stride.
inline void copy_rows_with_rope(const AttentionWork& w, const float* from, int64_t stride,
                                const int64_t* positions, int64_t rows, float factor, const Matrix& to) {
  for (int64_t i = 0; i < rows; ++i) {
    apply_rope(w, from + i * stride, positions[i], 1, factor, to.row(i));
    std::fill(to.row(i) + w.head_size, to.row(i) + to.stride, 0.0F);
  }
}

// Copies rows and pads them with zeros up to the stride.
inline void copy_rows(const float* from, int64_t stride, int64_t rows, int64_t width, const Matrix& to) {
  for (int64_t i = 0; i < rows; ++i) {
    std::memcpy(to.row(i), from + i * stride, static_cast<size_t>(width) * sizeof(float));
    std::fill(to.row(i) + width, to.row(i) + to.stride, 0.0F);
  }
}

// Transposes each tile of rows from [tile, width] to [width, tile]; the tiles follow each other in `to`.
inline void transpose_tiles(const Matrix& from, int64_t rows, int64_t width, float* to) {
  for (int64_t first = 0; first < rows; first += tile, to += width * tile)
    transpose(from.from(first), std::min(tile, rows - first), width, {to, tile});
}

// Products skip masked entries only in whole blocks of block_rows. Inside a block, masked weights must be
// zero. The mask grows by at most one column per query, so that clearing block_rows - 1 columns is enough.
inline void zero_masked(const TileMask& mask, const Matrix& weights) {
  const int64_t end = mask.columns[mask.queries - 1];
  for (int64_t i = 0; i < mask.queries; ++i) {
    const int64_t begin = mask.columns[i];
    std::fill(weights.row(i) + begin, weights.row(i) + std::min<int64_t>(end, begin + block_rows - 1), 0.0F);
  }
}

void AttentionForward(const AttentionWork& w, int64_t begin, int64_t end) {
  const int64_t width = w.head_size, group = w.heads / w.kv_heads;
  const int64_t padded_width = padded(width);
  for (int64_t unit = begin; unit < end; ++unit) {
    const Pair pair(w, unit / w.kv_heads);
    const int64_t kv_head = unit % w.kv_heads;
    const int64_t tiles = (pair.rows + tile - 1) / tile;
    Scratch scratch(
        static_cast<size_t>((2 * pair.rows + 2 * tile) * padded_width + tiles * tile * width + tile * tile));
    const Matrix keys{scratch.take(pair.rows * padded_width), padded_width};
    const Matrix values{scratch.take(pair.rows * padded_width), padded_width};
    float* keys_transposed = scratch.take(tiles * tile * width);
    const Matrix queries{scratch.take(tile * padded_width), padded_width};
    const Matrix weights{scratch.take(tile * tile), tile};
    const Matrix sums{scratch.take(tile * padded_width), padded_width};
    const int64_t first_value = pair.first_row * w.kv_stride + kv_head * width;
    copy_rows_with_rope(w, w.k + first_value, w.kv_stride, w.positions + pair.first_row, pair.rows, 1, keys);
    copy_rows(w.v + first_value, w.kv_stride, pair.rows, width, values);
    transpose_tiles(keys, pair.rows, width, keys_transposed);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int64_t first = 0; first < pair.queries; first += tile) {
        const int64_t count = std::min(tile, pair.queries - first), query = pair.first_query + first;
        copy_rows_with_rope(w, w.q + query * w.q_stride + head * width, w.q_stride,
                            w.positions + pair.query_row(first), count, w.scale, queries);
        std::fill(sums.data, sums.row(count), 0.0F);
        RunningSoftmax running[tile];
        std::fill(running, running + count, RunningSoftmax{masked_score, 0});
        const int64_t visible_rows =
            pair.visible(first + count - 1);  // for the last query, which attends to the most
        for (int64_t row = 0; row < visible_rows; row += tile) {
          const TileMask mask = pair.tile_mask(first, count, row);
          score_product(mask, queries, width, {keys_transposed + row * width, tile},
                        padded(mask.columns[count - 1]), weights);
          for (int64_t i = mask.first_query_for(0); i < count; ++i) {
            const float decay = update_softmax(weights.row(i), mask.columns[i], running[i]);
            if (decay != 1 && row > 0) scale_row(sums.row(i), padded_width, decay);
          }
          zero_masked(mask, weights);
          weighted_sum(mask, weights, values.from(row), padded_width, sums);
        }
        for (int64_t i = 0; i < count; ++i) {
          scale_row(sums.row(i), padded_width, 1 / running[i].sum);
          w.log_sums[(query + i) * w.heads + head] = running[i].largest + std::log(running[i].sum);
          std::memcpy(w.out + ((query + i) * w.heads + head) * width, sums.row(i), width * sizeof(float));
        }
      }
    }
  }
}

inline float dot(const float* a, const float* b, int64_t width) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sum = hn::Zero(d);
  for (int64_t j = 0; j < width; j += lanes) sum = hn::MulAdd(hn::LoadU(d, a + j), hn::LoadU(d, b + j), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void AttentionBackward(const AttentionWork& w, int64_t begin, int64_t end) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = w.head_size, group = w.heads / w.kv_heads;
  const int64_t padded_width = padded(width);
  for (int64_t unit = begin; unit < end; ++unit) {
    const Pair pair(w, unit / w.kv_heads);
    const int64_t kv_head = unit % w.kv_heads;
    const int64_t tiles = (pair.rows + tile - 1) / tile;
    Scratch scratch(static_cast<size_t>((4 * pair.rows + 3 * tile) * padded_width + 2 * tiles * tile * width +
                                        2 * tile * tile));
    const Matrix keys{scratch.take(pair.rows * padded_width), padded_width};
    const Matrix values{scratch.take(pair.rows * padded_width), padded_width};
    const Matrix d_keys{scratch.take(pair.rows * padded_width), padded_width};
    const Matrix d_values{scratch.take(pair.rows * padded_width), padded_width};
    float* keys_transposed = scratch.take(tiles * tile * width);
    float* values_transposed = scratch.take(tiles * tile * width);
    const Matrix queries{scratch.take(tile * padded_width), padded_width};
    const Matrix d_sums{scratch.take(tile * padded_width), padded_width};
    const Matrix d_queries{scratch.take(tile * padded_width), padded_width};
    const Matrix weights{scratch.take(tile * tile), tile};
    const Matrix d_weights{scratch.take(tile * tile), tile};
    const int64_t first_value = pair.first_row * w.kv_stride + kv_head * width;
    copy_rows_with_rope(w, w.k + first_value, w.kv_stride, w.positions + pair.first_row, pair.rows, 1, keys);
    copy_rows(w.v + first_value, w.kv_stride, pair.rows, width, values);
    transpose_tiles(keys, pair.rows, width, keys_transposed);
    transpose_tiles(values, pair.rows, width, values_transposed);
    std::fill(d_keys.data, d_keys.row(pair.rows), 0.0F);
    std::fill(d_values.data, d_values.row(pair.rows), 0.0F);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int64_t first = 0; first < pair.queries; first += tile) {
        const int64_t count = std::min(tile, pair.queries - first), query = pair.first_query + first;
        copy_rows_with_rope(w, w.q + query * w.q_stride + head * width, w.q_stride,
                            w.positions + pair.query_row(first), count, w.scale, queries);
        const int64_t first_sum = (query * w.heads + head) * width, sum_stride = w.heads * width;
        // The gradient of a softmax is p · (dp - Σ p · dp). Over one query's weights, Σ p · dp = dot(out,
        // d_out).
        float means[tile];
        copy_rows(w.out + first_sum, sum_stride, count, width, d_queries);
        copy_rows(w.d_out + first_sum, sum_stride, count, width, d_sums);
        for (int64_t i = 0; i < count; ++i) means[i] = dot(d_queries.row(i), d_sums.row(i), padded_width);
        std::fill(d_queries.data, d_queries.row(count), 0.0F);
        const int64_t visible_rows = pair.visible(first + count - 1);
        for (int64_t row = 0; row < visible_rows; row += tile) {
          const TileMask mask = pair.tile_mask(first, count, row);
          const int64_t rows = mask.columns[count - 1];
          score_product(mask, queries, width, {keys_transposed + row * width, tile}, padded(rows), weights);
          score_product(mask, d_sums, width, {values_transposed + row * width, tile}, padded(rows),
                        d_weights);
          for (int64_t i = mask.first_query_for(0); i < count; ++i) {
            float* p = weights.row(i);
            float* dp = d_weights.row(i);
            const Vector shift = hn::Set(d, w.log_sums[(query + i) * w.heads + head]);
            const Vector mean = hn::Set(d, means[i]);
            for (int64_t j = 0; j < mask.columns[i]; j += lanes) {
              const Vector value = exponential(hn::Sub(hn::LoadU(d, p + j), shift));
              hn::StoreU(value, d, p + j);
              hn::StoreU(hn::Mul(value, hn::Sub(hn::LoadU(d, dp + j), mean)), d, dp + j);
            }
          }
          zero_masked(mask, weights);
          zero_masked(mask, d_weights);
          weighted_sum(mask, d_weights, keys.from(row), padded_width, d_queries);
          transposed_weighted_sum(mask, d_weights, rows, queries, padded_width, d_keys.from(row));
          transposed_weighted_sum(mask, weights, rows, d_sums, padded_width, d_values.from(row));
        }
        for (int64_t i = 0; i < count; ++i) {
          apply_rope(w, d_queries.row(i), w.positions[pair.query_row(first + i)], -1, w.scale,
                     w.dq + (query + i) * w.dq_stride + head * width);
        }
      }
    }
    for (int64_t i = 0; i < pair.rows; ++i) {
      const int64_t row = pair.first_row + i;
      apply_rope(w, d_keys.row(i), w.positions[row], -1, 1, w.dk + row * w.dkv_stride + kv_head * width);
      std::memcpy(w.dv + row * w.dkv_stride + kv_head * width, d_values.row(i), width * sizeof(float));
    }
  }
}

}  // namespace calque::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace calque::simd {

HWY_EXPORT(AttentionForward);
HWY_EXPORT(AttentionBackward);

void attention_forward(const AttentionWork& work, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(AttentionForward)(work, begin, end);
}
void attention_backward(const AttentionWork& work, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(AttentionBackward)(work, begin, end);
}

}  // namespace calque::simd
#endif

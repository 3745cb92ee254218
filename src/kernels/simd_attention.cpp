// Attention's inner loops: tile by tile of one pair and head, one small product in the cache after another.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd_attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "calque/kernels/simd_loops.h"
#include "simd_attention-inl.h"
#include "simd_scratch.h"

HWY_BEFORE_NAMESPACE();
namespace calque::simd::HWY_NAMESPACE {
// Queries and rows go through in tiles of this many, so that what a product touches stays in the first two
// caches however long the sequence is.
constexpr int64_t tile = 64;
constexpr int block_rows = 6, block_vectors = 2;  // of a product, as many sums as there are registers for

// A matrix in scratch memory, rows padded to whole vectors.
struct Matrix {
  float* data;
  int64_t stride;
  float* row(int64_t i) const { return data + i * stride; }
  Matrix from(int64_t i) const { return {row(i), stride}; }
};

enum class As { is, transposed };  // how a product reads its first operand

// Which part of its depth a product goes through.
struct Range {
  int64_t begin, end;
};

template <As as, int rows, int vectors>
HWY_INLINE void product_block(const Matrix& a, int64_t i, const Matrix& b, int64_t j, Range depth,
                              const Matrix& c, bool add) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v)
      sums[r][v] = add ? hn::LoadU(d, c.row(i + r) + j + v * lanes) : hn::Zero(d);
  }
  const float* factors = as == As::is ? a.row(i) + depth.begin : a.row(depth.begin) + i;
  const float* values = b.row(depth.begin) + j;
  for (int64_t p = depth.begin; p < depth.end;
       ++p, values += b.stride, factors += as == As::is ? 1 : a.stride) {
    Vector value[vectors];
    for (int v = 0; v < vectors; ++v) value[v] = hn::LoadU(d, values + v * lanes);
    for (int r = 0; r < rows; ++r) {
      const Vector factor = hn::Set(d, factors[as == As::is ? r * a.stride : r]);
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(factor, value[v], sums[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[r][v], d, c.row(i + r) + j + v * lanes);
  }
}

// A block of `count` rows, which the compiler must know.
template <As as, int rows, int vectors>
HWY_INLINE void product_rows(const Matrix& a, int64_t i, int64_t count, const Matrix& b, int64_t j,
                             Range depth, const Matrix& c, bool add) {
  if (count >= rows) return product_block<as, rows, vectors>(a, i, b, j, depth, c, add);
  if constexpr (rows > 1) product_rows<as, rows - 1, vectors>(a, i, count, b, j, depth, c, add);
}

// c [rows, columns] = a [rows, depth] · b [depth, columns], or added to it; `a` as it is or as the transpose
// of what is given. Columns are rounded up to whole vectors. What is known to be hidden is left out:
// first_row(j) is the first row that matters for columns from j on, depth_of(i, n) what matters of the depth
// for rows i … i + n.
template <As as, class FirstRow, class DepthOf>
HWY_INLINE void product(const Matrix& a, int64_t rows, const Matrix& b, int64_t columns, const Matrix& c,
                        bool add, const FirstRow& first_row, const DepthOf& depth_of) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t j = 0;
  for (; j + lanes < columns; j += block_vectors * lanes) {
    for (int64_t i = first_row(j); i < rows; i += block_rows) {
      const Range depth = depth_of(i, std::min<int64_t>(block_rows, rows - i));
      product_rows<as, block_rows, block_vectors>(a, i, rows - i, b, j, depth, c, add);
    }
  }
  for (; j < columns; j += lanes) {
    for (int64_t i = first_row(j); i < rows; i += block_rows) {
      const Range depth = depth_of(i, std::min<int64_t>(block_rows, rows - i));
      product_rows<as, block_rows, 1>(a, i, rows - i, b, j, depth, c, add);
    }
  }
}

// How much of a tile of rows each query of a tile sees: never less than the one before it.
struct Sight {
  int64_t queries;
  int64_t columns[tile];

  // The first query that sees a column; `queries` if none does.
  int64_t first_seeing(int64_t column) const {
    int64_t i = 0;
    while (i < queries && columns[i] <= column) ++i;
    return i;
  }
};

// Queries [queries, width] times rows, transposed: scores [queries, columns], or any of what they are made
// of.
HWY_NOINLINE void score_product(const Sight& sight, const Matrix& queries, int64_t width,
                                const Matrix& rows_transposed, int64_t columns, const Matrix& scores) {
  product<As::is>(
      queries, sight.queries, rows_transposed, columns, scores, false,
      [&](int64_t j) { return sight.first_seeing(j); },
      [&](int64_t, int64_t) {
        return Range{0, width};
      });
}

// Weights [queries, rows] times rows [rows, width], added to sums [queries, width].
HWY_NOINLINE void weigh_product(const Sight& sight, const Matrix& weights, const Matrix& rows, int64_t width,
                                const Matrix& sums) {
  product<As::is>(
      weights, sight.queries, rows, width, sums, true, [&](int64_t) { return sight.first_seeing(0); },
      [&](int64_t i, int64_t n) {
        return Range{0, sight.columns[i + n - 1]};
      });
}

// Weights, transposed, times queries [queries, width], added to what the rows get, [rows, width].
HWY_NOINLINE void return_product(const Sight& sight, const Matrix& weights, int64_t rows,
                                 const Matrix& queries, int64_t width, const Matrix& sums) {
  product<As::transposed>(
      weights, rows, queries, width, sums, true, [](int64_t) { return int64_t{0}; },
      [&](int64_t i, int64_t) {
        return Range{sight.first_seeing(i), sight.queries};
      });
}

// to [columns, rows rounded up to whole vectors] = from [rows, columns], zeros behind the rows.
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

// What both passes know about a pair.
struct Pair {
  Pair(const AttentionWork& w, int64_t index)
      : first_row(w.offsets[index]),
        rows(w.offsets[index + 1] - first_row),
        first_query(w.query_offsets[index]),
        queries(w.query_offsets[index + 1] - first_query),
        prefix(w.prefix_ends[index] - first_row) {}
  // How many rows the i-th query sees.
  int64_t visible(int64_t query) const { return std::max(rows - queries + query + 1, prefix); }
  int64_t query_row(int64_t query) const { return first_row + rows - queries + query; }
  // What `count` queries see of the tile that begins at a row.
  Sight sight(int64_t query, int64_t count, int64_t row) const {
    Sight sight{count, {}};
    for (int64_t i = 0; i < count; ++i)
      sight.columns[i] = std::clamp<int64_t>(visible(query + i) - row, 0, std::min(tile, rows - row));
    return sight;
  }

  int64_t first_row, rows, first_query, queries, prefix;
};

// Rows turned to their positions, with zeros behind their width.
inline void turned_rows(const AttentionWork& w, const float* from, int64_t stride, const int64_t* positions,
                        int64_t rows, float factor, const Matrix& to) {
  for (int64_t i = 0; i < rows; ++i) {
    turn(w, from + i * stride, positions[i], 1, factor, to.row(i));
    std::fill(to.row(i) + w.head_width, to.row(i) + to.stride, 0.0F);
  }
}

inline void copied_rows(const float* from, int64_t stride, int64_t rows, int64_t width, const Matrix& to) {
  for (int64_t i = 0; i < rows; ++i) {
    std::memcpy(to.row(i), from + i * stride, static_cast<size_t>(width) * sizeof(float));
    std::fill(to.row(i) + width, to.row(i) + to.stride, 0.0F);
  }
}

// Each tile of rows [tile, width] as [width, tile], one behind the other.
inline void transpose_tiles(const Matrix& from, int64_t rows, int64_t width, float* to) {
  for (int64_t first = 0; first < rows; first += tile, to += width * tile)
    transpose(from.from(first), std::min(tile, rows - first), width, {to, tile});
}

// A block of a product goes through what one of its rows or columns sees: there the others' weights must be
// zero. From one query to the next a row more is seen at most.
inline void zero_hidden(const Sight& sight, const Matrix& weights) {
  const int64_t most = sight.columns[sight.queries - 1];
  for (int64_t i = 0; i < sight.queries; ++i) {
    const int64_t seen = sight.columns[i];
    std::fill(weights.row(i) + seen, weights.row(i) + std::min<int64_t>(most, seen + block_rows - 1), 0.0F);
  }
}

void AttentionForward(const AttentionWork& w, int64_t begin, int64_t end) {
  const int64_t width = w.head_width, group = w.heads / w.key_value_heads;
  const int64_t padded_width = padded(width);
  for (int64_t unit = begin; unit < end; ++unit) {
    const Pair pair(w, unit / w.key_value_heads);
    const int64_t kv_head = unit % w.key_value_heads;
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
    turned_rows(w, w.k + first_value, w.kv_stride, w.positions + pair.first_row, pair.rows, 1, keys);
    copied_rows(w.v + first_value, w.kv_stride, pair.rows, width, values);
    transpose_tiles(keys, pair.rows, width, keys_transposed);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int64_t first = 0; first < pair.queries; first += tile) {
        const int64_t count = std::min(tile, pair.queries - first), query = pair.first_query + first;
        turned_rows(w, w.q + query * w.q_stride + head * width, w.q_stride,
                    w.positions + pair.query_row(first), count, w.scale, queries);
        std::fill(sums.data, sums.row(count), 0.0F);
        Running running[tile];
        std::fill(running, running + count, Running{hidden_score, 0});
        const int64_t seen = pair.visible(first + count - 1);  // by the last query, which sees most
        for (int64_t row = 0; row < seen; row += tile) {
          const Sight sight = pair.sight(first, count, row);
          score_product(sight, queries, width, {keys_transposed + row * width, tile},
                        padded(sight.columns[count - 1]), weights);
          for (int64_t i = sight.first_seeing(0); i < count; ++i) {
            const float decay = soften(weights.row(i), sight.columns[i], running[i]);
            if (decay != 1 && row > 0) scale_row(sums.row(i), padded_width, decay);
          }
          zero_hidden(sight, weights);
          weigh_product(sight, weights, values.from(row), padded_width, sums);
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
  const int64_t width = w.head_width, group = w.heads / w.key_value_heads;
  const int64_t padded_width = padded(width);
  for (int64_t unit = begin; unit < end; ++unit) {
    const Pair pair(w, unit / w.key_value_heads);
    const int64_t kv_head = unit % w.key_value_heads;
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
    turned_rows(w, w.k + first_value, w.kv_stride, w.positions + pair.first_row, pair.rows, 1, keys);
    copied_rows(w.v + first_value, w.kv_stride, pair.rows, width, values);
    transpose_tiles(keys, pair.rows, width, keys_transposed);
    transpose_tiles(values, pair.rows, width, values_transposed);
    std::fill(d_keys.data, d_keys.row(pair.rows), 0.0F);
    std::fill(d_values.data, d_values.row(pair.rows), 0.0F);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int64_t first = 0; first < pair.queries; first += tile) {
        const int64_t count = std::min(tile, pair.queries - first), query = pair.first_query + first;
        turned_rows(w, w.q + query * w.q_stride + head * width, w.q_stride,
                    w.positions + pair.query_row(first), count, w.scale, queries);
        const int64_t first_sum = (query * w.heads + head) * width, sum_stride = w.heads * width;
        // Σ p · dp over all that a query sees is dot(out, d_out): what its gradients are relative to.
        float means[tile];
        copied_rows(w.out + first_sum, sum_stride, count, width, d_queries);
        copied_rows(w.d_out + first_sum, sum_stride, count, width, d_sums);
        for (int64_t i = 0; i < count; ++i) means[i] = dot(d_queries.row(i), d_sums.row(i), padded_width);
        std::fill(d_queries.data, d_queries.row(count), 0.0F);
        const int64_t seen = pair.visible(first + count - 1);
        for (int64_t row = 0; row < seen; row += tile) {
          const Sight sight = pair.sight(first, count, row);
          const int64_t rows = sight.columns[count - 1];
          score_product(sight, queries, width, {keys_transposed + row * width, tile}, padded(rows), weights);
          score_product(sight, d_sums, width, {values_transposed + row * width, tile}, padded(rows),
                        d_weights);
          for (int64_t i = sight.first_seeing(0); i < count; ++i) {
            float* p = weights.row(i);
            float* dp = d_weights.row(i);
            const Vector shift = hn::Set(d, w.log_sums[(query + i) * w.heads + head]);
            const Vector mean = hn::Set(d, means[i]);
            for (int64_t j = 0; j < sight.columns[i]; j += lanes) {
              const Vector value = exponential(hn::Sub(hn::LoadU(d, p + j), shift));
              hn::StoreU(value, d, p + j);
              hn::StoreU(hn::Mul(value, hn::Sub(hn::LoadU(d, dp + j), mean)), d, dp + j);
            }
          }
          zero_hidden(sight, weights);
          zero_hidden(sight, d_weights);
          weigh_product(sight, d_weights, keys.from(row), padded_width, d_queries);
          return_product(sight, d_weights, rows, queries, padded_width, d_keys.from(row));
          return_product(sight, weights, rows, d_sums, padded_width, d_values.from(row));
        }
        for (int64_t i = 0; i < count; ++i) {
          turn(w, d_queries.row(i), w.positions[pair.query_row(first + i)], -1, w.scale,
               w.dq + (query + i) * w.dq_stride + head * width);
        }
      }
    }
    for (int64_t i = 0; i < pair.rows; ++i) {
      const int64_t row = pair.first_row + i;
      turn(w, d_keys.row(i), w.positions[row], -1, 1, w.dk + row * w.dkv_stride + kv_head * width);
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

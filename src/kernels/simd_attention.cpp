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

template <As as, int rows, int vectors>
HWY_INLINE void product_block(const Matrix& a, int64_t i, const Matrix& b, int64_t j, int64_t depth,
                              const Matrix& c, bool add) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v)
      sums[r][v] = add ? hn::LoadU(d, c.row(i + r) + j + v * lanes) : hn::Zero(d);
  }
  const float* factors = as == As::is ? a.row(i) : a.data + i;
  const float* values = b.data + j;
  for (int64_t p = 0; p < depth; ++p, values += b.stride, factors += as == As::is ? 1 : a.stride) {
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
                             int64_t depth, const Matrix& c, bool add) {
  if (count >= rows) return product_block<as, rows, vectors>(a, i, b, j, depth, c, add);
  if constexpr (rows > 1) product_rows<as, rows - 1, vectors>(a, i, count, b, j, depth, c, add);
}

// c [rows, columns] = a [rows, depth] · b [depth, columns], or added to it; `a` as it is or as the transpose
// of what is given. Columns are rounded up to whole vectors.
template <As as>
HWY_NOINLINE void product(const Matrix& a, int64_t rows, const Matrix& b, int64_t columns, int64_t depth,
                          const Matrix& c, bool add) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t j = 0;
  for (; j + lanes < columns; j += block_vectors * lanes) {
    for (int64_t i = 0; i < rows; i += block_rows)
      product_rows<as, block_rows, block_vectors>(a, i, rows - i, b, j, depth, c, add);
  }
  for (; j < columns; j += lanes) {
    for (int64_t i = 0; i < rows; i += block_rows)
      product_rows<as, block_rows, 1>(a, i, rows - i, b, j, depth, c, add);
  }
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

  int64_t first_row, rows, first_query, queries, prefix;
};

// The tile of `rows` rows from `first` on, each turned to its position.
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

// How far a query's softmax has come.
struct Running {
  float largest, sum;
};

// Scores of a tile's visible rows to weights, relative to the largest so far; zeros behind. Gives what the
// sums before are to be multiplied with.
inline float soften(float* scores, int64_t visible, int64_t columns, Running& running) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = padded(visible);
  std::fill(scores + visible, scores + whole, hidden_score);
  Vector most = hn::LoadU(d, scores);
  for (int64_t j = lanes; j < whole; j += lanes) most = hn::Max(most, hn::LoadU(d, scores + j));
  const float largest = std::max(running.largest, hn::GetLane(hn::MaxOfLanes(d, most)));
  const Vector shift = hn::Set(d, largest);
  Vector sum = hn::Zero(d);
  for (int64_t j = 0; j < whole; j += lanes) {
    const Vector value = exponential(hn::Sub(hn::LoadU(d, scores + j), shift));
    hn::StoreU(value, d, scores + j);
    sum = hn::Add(sum, value);
  }
  std::fill(scores + whole, scores + columns, 0.0F);
  const float decay = largest > running.largest ? std::exp(running.largest - largest) : 1;
  running = {largest, running.sum * decay + hn::GetLane(hn::SumOfLanes(d, sum))};
  return decay;
}

inline void scale_row(float* row, int64_t width, float factor) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Vector factors = hn::Set(d, factor);
  for (int64_t j = 0; j < width; j += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, row + j), factors), d, row + j);
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
          const int64_t columns = padded(std::min(tile, seen - row));
          int64_t i = 0;  // the first query that sees something of the tile
          while (pair.visible(first + i) <= row) ++i;
          product<As::is>(queries.from(i), count - i, {keys_transposed + row * width, tile}, columns, width,
                          weights.from(i), false);
          const int64_t first_seeing = i;
          for (; i < count; ++i) {
            const float decay =
                soften(weights.row(i), std::min(columns, pair.visible(first + i) - row), columns, running[i]);
            if (decay != 1 && row > 0) scale_row(sums.row(i), padded_width, decay);
          }
          product<As::is>(weights.from(first_seeing), count - first_seeing, values.from(row), padded_width,
                          std::min(tile, seen - row), sums.from(first_seeing), true);
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
          const int64_t rows = std::min(tile, seen - row), columns = padded(rows);
          int64_t skipped = 0;  // queries that see nothing of the tile
          while (pair.visible(first + skipped) <= row) ++skipped;
          const int64_t seeing = count - skipped;
          const Matrix p = weights.from(skipped), dp = d_weights.from(skipped);
          product<As::is>(queries.from(skipped), seeing, {keys_transposed + row * width, tile}, columns,
                          width, p, false);
          product<As::is>(d_sums.from(skipped), seeing, {values_transposed + row * width, tile}, columns,
                          width, dp, false);
          for (int64_t i = 0; i < seeing; ++i) {
            const int64_t at = skipped + i;
            std::fill(p.row(i) + std::min(columns, pair.visible(first + at) - row), p.row(i) + columns,
                      hidden_score);
            const Vector shift = hn::Set(d, w.log_sums[(query + at) * w.heads + head]);
            const Vector mean = hn::Set(d, means[at]);
            for (int64_t j = 0; j < columns; j += lanes) {
              const Vector value = exponential(hn::Sub(hn::LoadU(d, p.row(i) + j), shift));
              hn::StoreU(value, d, p.row(i) + j);
              hn::StoreU(hn::Mul(value, hn::Sub(hn::LoadU(d, dp.row(i) + j), mean)), d, dp.row(i) + j);
            }
          }
          product<As::is>(dp, seeing, keys.from(row), padded_width, rows, d_queries.from(skipped), true);
          product<As::transposed>(dp, rows, queries.from(skipped), padded_width, seeing, d_keys.from(row),
                                  true);
          product<As::transposed>(p, rows, d_sums.from(skipped), padded_width, seeing, d_values.from(row),
                                  true);
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

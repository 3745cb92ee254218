// Attention's inner loops: everything of one pair and head fits in the cache, and is one small product after
// another.
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
constexpr int64_t query_tile =
    64;  // queries at a time, so that their weights stay in the cache for long sequences too

// A matrix in scratch memory, rows padded to whole vectors.
struct Matrix {
  float* data;
  int64_t stride;
  float* row(int64_t i) const { return data + i * stride; }
};

// An operand whose element (i, p) stands at data[i · row_step + p · column_step]: a matrix or its transpose.
struct Operand {
  const float* data;
  int64_t row_step, column_step;
};
inline Operand plain(const Matrix& m) { return {m.data, m.stride, 1}; }
inline Operand transposed(const Matrix& m) { return {m.data, 1, m.stride}; }

template <int rows, int vectors>
HWY_INLINE void product_block(const Operand& a, int64_t i, const Matrix& b, int64_t j, int64_t depth,
                              const Matrix& c, bool add) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v)
      sums[r][v] = add ? hn::LoadU(d, c.row(i + r) + j + v * lanes) : hn::Zero(d);
  }
  for (int64_t p = 0; p < depth; ++p) {
    Vector values[vectors];
    for (int v = 0; v < vectors; ++v) values[v] = hn::LoadU(d, b.row(p) + j + v * lanes);
    for (int r = 0; r < rows; ++r) {
      const Vector factor = hn::Set(d, a.data[(i + r) * a.row_step + p * a.column_step]);
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(factor, values[v], sums[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[r][v], d, c.row(i + r) + j + v * lanes);
  }
}

template <int vectors>
HWY_INLINE void product_columns(const Operand& a, int64_t rows, const Matrix& b, int64_t j, int64_t depth,
                                const Matrix& c, bool add) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) product_block<4, vectors>(a, i, b, j, depth, c, add);
  for (; i < rows; ++i) product_block<1, vectors>(a, i, b, j, depth, c, add);
}

// c [rows, columns] = a [rows, depth] · b [depth, columns], or added to it. Columns are rounded up to whole
// vectors.
HWY_INLINE void product(const Operand& a, int64_t rows, const Matrix& b, int64_t columns, int64_t depth,
                        const Matrix& c, bool add = false) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t j = 0;
  for (; j + 2 * lanes < columns; j += 3 * lanes) product_columns<3>(a, rows, b, j, depth, c, add);
  for (; j + lanes < columns; j += 2 * lanes) product_columns<2>(a, rows, b, j, depth, c, add);
  for (; j < columns; j += lanes) product_columns<1>(a, rows, b, j, depth, c, add);
}

inline void transpose(const Matrix& from, int64_t rows, int64_t columns, const Matrix& to) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to.data[j * to.stride + i] = from.data[i * from.stride + j];
  }
  for (int64_t j = 0; j < columns; ++j) std::fill(to.row(j) + rows, to.row(j) + to.stride, 0.0F);
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

void AttentionForward(const AttentionWork& w, int64_t begin, int64_t end) {
  const int64_t width = w.head_width, group = w.heads / w.key_value_heads;
  const int64_t padded_width = padded(width);
  for (int64_t unit = begin; unit < end; ++unit) {
    const Pair pair(w, unit / w.key_value_heads);
    const int64_t kv_head = unit % w.key_value_heads;
    const int64_t padded_rows = padded(pair.rows);
    Scratch scratch(static_cast<size_t>((pair.rows + 2 * query_tile) * padded_width * 2 +
                                        (width + query_tile) * padded_rows));
    const Matrix keys{scratch.take(pair.rows * padded_width), padded_width};
    const Matrix keys_transposed{scratch.take(width * padded_rows), padded_rows};
    const Matrix values{scratch.take(pair.rows * padded_width), padded_width};
    const Matrix queries{scratch.take(query_tile * padded_width), padded_width};
    const Matrix weights{scratch.take(query_tile * padded_rows), padded_rows};
    const Matrix sums{scratch.take(query_tile * padded_width), padded_width};
    for (int64_t i = 0; i < pair.rows; ++i) {
      const int64_t row = pair.first_row + i;
      turn(w, w.k + row * w.kv_stride + kv_head * width, w.positions[row], 1, 1, keys.row(i));
      std::memcpy(values.row(i), w.v + row * w.kv_stride + kv_head * width, width * sizeof(float));
      std::fill(values.row(i) + width, values.row(i) + padded_width, 0.0F);
    }
    transpose(keys, pair.rows, width, keys_transposed);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int64_t tile = 0; tile < pair.queries; tile += query_tile) {
        const int64_t count = std::min(query_tile, pair.queries - tile);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t query = tile + i;
          turn(w, w.q + (pair.first_query + query) * w.q_stride + head * width,
               w.positions[pair.query_row(query)], 1, w.scale, queries.row(i));
        }
        const int64_t seen =
            pair.visible(tile + count - 1);  // by the last query of the tile, which sees most
        product(plain(queries), count, keys_transposed, seen, width, weights);
        for (int64_t i = 0; i < count; ++i) {
          w.log_sums[(pair.first_query + tile + i) * w.heads + head] =
              softmax(weights.row(i), pair.visible(tile + i), padded(seen));
        }
        product(plain(weights), count, values, padded_width, seen, sums);
        for (int64_t i = 0; i < count; ++i) {
          std::memcpy(w.out + ((pair.first_query + tile + i) * w.heads + head) * width, sums.row(i),
                      width * sizeof(float));
        }
      }
    }
  }
}

void AttentionBackward(const AttentionWork& w, int64_t begin, int64_t end) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = w.head_width, group = w.heads / w.key_value_heads;
  const int64_t padded_width = padded(width);
  for (int64_t unit = begin; unit < end; ++unit) {
    const Pair pair(w, unit / w.key_value_heads);
    const int64_t kv_head = unit % w.key_value_heads;
    const int64_t padded_rows = padded(pair.rows);
    Scratch scratch(static_cast<size_t>((4 * pair.rows + 3 * query_tile) * padded_width +
                                        (2 * width + 2 * query_tile) * padded_rows));
    const Matrix keys{scratch.take(pair.rows * padded_width), padded_width};
    const Matrix values{scratch.take(pair.rows * padded_width), padded_width};
    const Matrix d_keys{scratch.take(pair.rows * padded_width), padded_width};
    const Matrix d_values{scratch.take(pair.rows * padded_width), padded_width};
    const Matrix keys_transposed{scratch.take(width * padded_rows), padded_rows};
    const Matrix values_transposed{scratch.take(width * padded_rows), padded_rows};
    const Matrix queries{scratch.take(query_tile * padded_width), padded_width};
    const Matrix d_sums{scratch.take(query_tile * padded_width), padded_width};
    const Matrix d_queries{scratch.take(query_tile * padded_width), padded_width};
    const Matrix weights{scratch.take(query_tile * padded_rows), padded_rows};
    const Matrix d_weights{scratch.take(query_tile * padded_rows), padded_rows};
    for (int64_t i = 0; i < pair.rows; ++i) {
      const int64_t row = pair.first_row + i;
      turn(w, w.k + row * w.kv_stride + kv_head * width, w.positions[row], 1, 1, keys.row(i));
      std::fill(keys.row(i) + width, keys.row(i) + padded_width, 0.0F);
      std::memcpy(values.row(i), w.v + row * w.kv_stride + kv_head * width, width * sizeof(float));
    }
    std::fill(d_keys.data, d_keys.data + pair.rows * padded_width, 0.0F);
    std::fill(d_values.data, d_values.data + pair.rows * padded_width, 0.0F);
    transpose(keys, pair.rows, width, keys_transposed);
    transpose(values, pair.rows, width, values_transposed);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int64_t tile = 0; tile < pair.queries; tile += query_tile) {
        const int64_t count = std::min(query_tile, pair.queries - tile);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t query = pair.first_query + tile + i;
          turn(w, w.q + query * w.q_stride + head * width, w.positions[pair.query_row(tile + i)], 1, w.scale,
               queries.row(i));
          std::fill(queries.row(i) + width, queries.row(i) + padded_width, 0.0F);
          std::memcpy(d_sums.row(i), w.d_out + (query * w.heads + head) * width, width * sizeof(float));
          std::fill(d_sums.row(i) + width, d_sums.row(i) + padded_width, 0.0F);
        }
        const int64_t seen = pair.visible(tile + count - 1);
        const int64_t padded_seen = padded(seen);
        product(plain(queries), count, keys_transposed, seen, width, weights);
        product(plain(d_sums), count, values_transposed, seen, width, d_weights);
        for (int64_t i = 0; i < count; ++i) {
          float* p = weights.row(i);
          float* dp = d_weights.row(i);
          const int64_t visible = pair.visible(tile + i);
          std::fill(p + visible, p + padded_seen, -1e30F);
          const Vector shift = hn::Set(d, w.log_sums[(pair.first_query + tile + i) * w.heads + head]);
          Vector sum = hn::Zero(d);
          for (int64_t j = 0; j < padded_seen; j += lanes) {
            const Vector exponent = hn::Sub(hn::LoadU(d, p + j), shift);
            const Vector value = hn::IfThenZeroElse(hn::Lt(exponent, hn::Set(d, -87.0F)),
                                                    hn::Exp(d, hn::Max(exponent, hn::Set(d, -87.0F))));
            hn::StoreU(value, d, p + j);
            sum = hn::MulAdd(value, hn::LoadU(d, dp + j), sum);
          }
          const Vector total = hn::SumOfLanes(d, sum);
          for (int64_t j = 0; j < padded_seen; j += lanes) {  // the softmax's own gradient: p · (dp - Σ p dp)
            hn::StoreU(hn::Mul(hn::LoadU(d, p + j), hn::Sub(hn::LoadU(d, dp + j), total)), d, dp + j);
          }
        }
        product(plain(d_weights), count, keys, padded_width, seen, d_queries);
        product(transposed(d_weights), seen, queries, padded_width, count, d_keys, true);
        product(transposed(weights), seen, d_sums, padded_width, count, d_values, true);
        for (int64_t i = 0; i < count; ++i) {
          turn(w, d_queries.row(i), w.positions[pair.query_row(tile + i)], -1, w.scale,
               w.dq + (pair.first_query + tile + i) * w.dq_stride + head * width);
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

// The inner loops of the fast kernels, on plain arrays, in SIMD chosen for this CPU at run time. Each works
// on a range, so that the caller divides the work among threads. The functions above them hold what the
// tensors mean.
#pragma once

#include <cstdint>

namespace calque::simd {

// Attention over all pairs; one unit of work is (pair, key-value head), numbered pair · key_value_heads +
// head.
struct AttentionWork {
  const int64_t* offsets;  // as in Layout
  const int64_t* prefix_ends;
  const int64_t* query_offsets;
  const int64_t* positions;  // [rows]
  int64_t heads, key_value_heads, head_width;
  float scale;
  const float* cosines;  // [positions, head_width / 2], null without rotary positions
  const float* sines;

  const float* q;  // head h of query i at q + i · q_stride + h · head_width
  const float* k;  // head g of row i at k + i · kv_stride + g · head_width
  const float* v;
  int64_t q_stride, kv_stride;
  float* out;       // [queries, heads, head_width]
  float* log_sums;  // [queries, heads] log of the softmax's denominator, which the backward pass starts from

  const float* d_out;  // [queries, heads, head_width]
  float* dq;           // laid out as q, k, v
  float* dk;
  float* dv;
  int64_t dq_stride, dkv_stride;
};
void attention_forward(const AttentionWork& work, int64_t begin, int64_t end);
void attention_backward(const AttentionWork& work, int64_t begin, int64_t end);

// Attention of a few new rows over keys and values in a cache; one unit of work is (pair, key-value head).
struct CachedAttentionWork {
  const int64_t* query_offsets;  // [pairs + 1] as in Layout
  const int64_t* query_rows;     // [queries] which row of the pass each query is
  const int64_t* positions;      // [rows]
  const int32_t* seen;           // as in CacheRows
  const int64_t* seen_offsets;
  const int64_t* prefixes;
  const int32_t* slots;
  int64_t heads, key_value_heads, head_width;
  int64_t window;  // as in AttentionShape
  float scale;
  const float* cosines;
  const float* sines;

  const float* q;  // head h of query i at q + i · q_stride + h · head_width
  int64_t q_stride;
  const float* kv;  // [rows, keys | values], rows kv_stride apart
  int64_t kv_stride;
  float* cache;  // [capacity, keys | values], keys turned
  float* out;    // [queries, heads, head_width]
};
void store_in_cache(const CachedAttentionWork& work, int64_t begin, int64_t end);  // rows begin … end
void cached_attention(const CachedAttentionWork& work, int64_t begin, int64_t end);

// The `count` largest of each row of [rows, vocabulary], the largest first, of equals the lower index first;
// where a row has fewer above -infinity, the rest are index -1.
void top_of_rows(const float* rows, int64_t vocabulary, int64_t count, float* values, int32_t* indices,
                 int64_t begin, int64_t end);
// log Σ exp of each row.
void log_sum_rows(const float* rows, int64_t vocabulary, float* sums, int64_t begin, int64_t end);

// Products with a packed weight; one unit of work is a panel of outputs.
constexpr int64_t packed_columns = 16;
struct PackedWork {
  const void* panels;   // as in PackedMatrix
  const float* scales;  // [outputs] of int8
  const float* bias;    // [outputs], as many as whole panels have
  int64_t inputs, outputs;
  const float* x;           // [rows, inputs]
  const int16_t* whole;     // [rows, inputs rounded up to even] x as round_rows makes it, for int8
  const float* row_scales;  // [rows]
  int64_t rows;
  float* y;  // [rows, outputs]
  bool add;
};
void packed_float32(const PackedWork& work, int64_t begin, int64_t end);
void packed_bfloat16(const PackedWork& work, int64_t begin, int64_t end);
void packed_int8(const PackedWork& work, int64_t begin, int64_t end);
// Rows to whole numbers up to ±limit, and what one step of each row is worth.
void round_rows(const float* x, int64_t width, int64_t rows, float limit, int16_t* whole, float* scales);

// Rows begin … end of [rows, width]; `inverses` [rows] keeps 1 / √(mean + epsilon) for the backward pass.
void rms_norm_forward(const float* x, const float* weight, float epsilon, int64_t width, float* y,
                      float* inverses, int64_t begin, int64_t end);
// d_weight [width] is added to.
void rms_norm_backward(const float* x, const float* weight, const float* inverses, const float* dy,
                       int64_t width, float* dx, float* d_weight, int64_t begin, int64_t end);

// Mean and deviation instead of the root mean square.
void layer_norm_forward(const float* x, const float* weight, const float* bias, float epsilon, int64_t width,
                        float* y, int64_t begin, int64_t end);
// y = gelu(x), the tanh form; y may be x.
void gelu_forward(const float* x, int64_t count, float* y);

// Rows of [rows, 2 · width] to rows of [rows, width].
void gated_forward(const float* x, bool gelu, int64_t width, float* y, int64_t begin, int64_t end);
void gated_backward(const float* x, const float* dy, bool gelu, int64_t width, float* dx, int64_t begin,
                    int64_t end);

// Replaces each row of logits [rows, vocabulary] by the gradient of its smoothed cross-entropy; losses[2r] is
// that loss, losses[2r + 1] the plain -log p(label).
void cross_entropy_rows(float* logits, const int64_t* labels, float smoothing, int64_t vocabulary,
                        double* losses, int64_t begin, int64_t end);

}  // namespace calque::simd

// The inner loops of the fast kernels, on plain arrays; the SIMD instruction set is chosen at run time. Each
// works on the range begin … end - 1, so that the caller can divide the work among threads. The public kernel
// headers document what the tensors mean.
#pragma once

#include <cstdint>

namespace calque::simd {

// Attention over all pairs. One unit of work is (pair, key-value head), numbered pair · kv_heads + head.
struct AttentionWork {
  const int64_t* offsets;  // as in Layout
  const int64_t* prefix_ends;
  const int64_t* query_offsets;
  const int64_t* positions;  // [rows]
  int64_t heads, kv_heads, head_size;
  float scale;
  const float* cosines;  // [positions, head_size / 2]; null without RoPE
  const float* sines;

  const float* q;  // head h of query i at q + i · q_stride + h · head_size
  const float* k;  // head g of row i at k + i · kv_stride + g · head_size
  const float* v;
  int64_t q_stride, kv_stride;
  float* out;       // [queries, heads, head_size]
  float* log_sums;  // [queries, heads] log of the softmax denominator, for the backward pass

  const float* d_out;  // [queries, heads, head_size]
  float* dq;           // dq, dk, dv: same layout as q, k, v
  float* dk;
  float* dv;
  int64_t dq_stride, dkv_stride;
};
void attention_forward(const AttentionWork& work, int64_t begin, int64_t end);
void attention_backward(const AttentionWork& work, int64_t begin, int64_t end);

// Attention of a few new rows over keys and values in a cache. One unit of work is (pair, key-value head).
struct CachedAttentionWork {
  const int64_t* query_offsets;  // [pairs + 1] as in Layout
  const int64_t* query_rows;     // [queries] the row of each query in this pass
  const int64_t* positions;      // [rows]
  const int32_t* visible;        // as in CacheIndex
  const int64_t* visible_offsets;
  const int64_t* prefix_lengths;
  const int32_t* slots;
  int64_t heads, kv_heads, head_size;
  int64_t sliding_window;  // as in AttentionShape
  float scale;
  const float* cosines;
  const float* sines;

  const float* q;  // head h of query i at q + i · q_stride + h · head_size
  int64_t q_stride;
  const float* kv;  // [rows, keys | values], rows kv_stride apart
  int64_t kv_stride;
  float* cache;  // [capacity, keys | values], keys with RoPE applied
  float* out;    // [queries, heads, head_size]
};
// Writes the keys and values of rows begin … end - 1 to their slots.
void store_in_cache(const CachedAttentionWork& work, int64_t begin, int64_t end);
void cached_attention(const CachedAttentionWork& work, int64_t begin, int64_t end);

// Top-k: the `count` largest values of each row of [rows, vocabulary], descending; ties: the lower index
// first. If a row has fewer values above -infinity, the remaining indices are -1.
void top_k_rows(const float* rows, int64_t vocabulary, int64_t count, float* values, int32_t* indices,
                int64_t begin, int64_t end);
// log Σ exp(x) of each row.
void log_sum_exp_rows(const float* rows, int64_t vocabulary, float* sums, int64_t begin, int64_t end);

// Products with a packed weight. One unit of work is a panel of outputs.
constexpr int64_t packed_columns = 16;
struct PackedWork {
  const void* panels;   // as in PackedMatrix
  const float* scales;  // [outputs] for int8
  const float* bias;    // [outputs], padded to whole panels
  int64_t inputs, outputs;
  const float* x;            // [rows, inputs]
  const int16_t* quantised;  // [rows, inputs rounded up to even] for int8: x from quantise_rows
  const float* row_scales;   // [rows]
  int64_t rows;
  float* y;  // [rows, outputs]
};
void packed_float32(const PackedWork& work, int64_t begin, int64_t end);
void packed_bfloat16(const PackedWork& work, int64_t begin, int64_t end);
void packed_int8(const PackedWork& work, int64_t begin, int64_t end);
// Quantises each row to integers in -limit … limit; scales[row] is the value of one step.
void quantise_rows(const float* x, int64_t width, int64_t rows, float limit, int16_t* quantised,
                   float* scales);

// Products by AVX-512 instructions, with sums in float32, in a fixed order. Operands are read as words along
// the inner dimension: a float32, or two neighbours in bfloat16, for which the processor needs AVX-512 BF16.
constexpr int64_t panel_columns = 32, panel_rows = 48;  // of a panel of packed words, for b and for a
struct WordPacking {
  const void* from;  // [inner, count], or transposed [count, inner]; rows row_bytes apart
  int64_t row_bytes, inner, words, count;
  int64_t panel_width;  // panel_columns or panel_rows
  uint32_t* to;         // [panels, words, panel_width]; zeros beyond `inner` and `count`
};
void pack_words(const WordPacking& work, int64_t panel_begin, int64_t panel_end);  // of float32
void pack_pairs(const WordPacking& work, int64_t panel_begin, int64_t panel_end);  // of bfloat16
// `inner` values fill whole words.
void pack_transposed_words(const WordPacking& work, int64_t panel_begin, int64_t panel_end);
struct Avx512Work {
  const uint32_t* a;  // [rows, words], rows a_stride apart; or packed
  bool a_is_packed;
  int64_t a_stride;
  const uint32_t* b;  // packed
  int64_t words, columns;
  float* out;  // rows out_stride apart
  int64_t out_stride;
  bool add;  // to what `out` holds
};
// Of packed rows, row_begin is a multiple of panel_rows.
void float32_product(const Avx512Work& work, int64_t row_begin, int64_t row_end, int64_t panel_begin,
                     int64_t panel_end);
void bfloat16_product(const Avx512Work& work, int64_t row_begin, int64_t row_end, int64_t panel_begin,
                      int64_t panel_end);

// RMSNorm of rows of [rows, width]. inverses: [rows], receives 1 / √(mean(x²) + epsilon) for the backward
// pass; may be null.
void rms_norm_forward(const float* x, const float* weight, float epsilon, int64_t width, float* y,
                      float* inverses, int64_t begin, int64_t end);
// Adds to d_weight [width].
void rms_norm_backward(const float* x, const float* weight, const float* inverses, const float* dy,
                       int64_t width, float* dx, float* d_weight, int64_t begin, int64_t end);

// LayerNorm of rows of [rows, width].
void layer_norm_forward(const float* x, const float* weight, const float* bias, float epsilon, int64_t width,
                        float* y, int64_t begin, int64_t end);
// y += x.
void add(const float* x, int64_t count, float* y);
// y = gelu(x), tanh approximation; y may be x.
void gelu_forward(const float* x, int64_t count, float* y);

// y [rows, width] = act(gate) * value, x: [rows, gate | value], each `width` wide.
void gated_forward(const float* x, bool gelu, int64_t width, float* y, int64_t begin, int64_t end);
void gated_backward(const float* x, const float* dy, bool gelu, int64_t width, float* dx, int64_t begin,
                    int64_t end);

// Replaces each row of logits [rows, vocabulary] by the gradient of its cross-entropy with label smoothing.
// losses[2r] receives that loss, losses[2r + 1] the plain -log p(label).
void cross_entropy_rows(float* logits, const int64_t* labels, float smoothing, int64_t vocabulary,
                        double* losses, int64_t begin, int64_t end);

}  // namespace calque::simd

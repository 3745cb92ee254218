// Inner loops of attention over a cache: few queries; keys and values in arbitrary cache slots.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd_cached_attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// (after highway.h)
#include <cstring>

#include "simd_attention-inl.h"
#include "simd_loops.h"
#include "simd_scratch.h"

HWY_BEFORE_NAMESPACE();
namespace calque::simd::HWY_NAMESPACE {

void StoreInCache(const CachedAttentionWork& w, int64_t begin, int64_t end) {
  const int64_t keys = w.kv_heads * w.head_size;
  for (int64_t row = begin; row < end; ++row) {
    const float* from = w.kv + row * w.kv_stride;
    float* to = w.cache + w.slots[row] * 2 * keys;
    for (int64_t head = 0; head < w.kv_heads; ++head)
      apply_rope(w, from + head * w.head_size, w.positions[row], 1, 1, to + head * w.head_size);
    std::memcpy(to + keys, from + keys, static_cast<size_t>(keys) * sizeof(float));
  }
}

constexpr int keys_at_once = 4;
constexpr int vectors_at_once = 8;

// scores[k] = query · key for n keys.
template <int n>
HWY_INLINE void score_block(const float* query, const float* keys, const int32_t* slots, int64_t stride,
                            int64_t width, float* scores) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* key[n];
  Vector sums[n];
  for (int k = 0; k < n; ++k) {
    key[k] = keys + slots[k] * stride;
    sums[k] = hn::Zero(d);
  }
  int64_t i = 0;
  for (; i + lanes <= width; i += lanes) {
    const Vector q = hn::LoadU(d, query + i);
    for (int k = 0; k < n; ++k) sums[k] = hn::MulAdd(q, hn::LoadU(d, key[k] + i), sums[k]);
  }
  for (int k = 0; k < n; ++k) {
    scores[k] = hn::GetLane(hn::SumOfLanes(d, sums[k]));
    for (int64_t rest = i; rest < width; ++rest) scores[k] += query[rest] * key[k][rest];
  }
}

HWY_INLINE void score_keys(const float* query, const float* keys, const int32_t* slots, int64_t count,
                           int64_t stride, int64_t width, float* scores) {
  int64_t j = 0;
  for (; j + keys_at_once <= count; j += keys_at_once)
    score_block<keys_at_once>(query, keys, slots + j, stride, width, scores + j);
  for (; j < count; ++j) score_block<1>(query, keys, slots + j, stride, width, scores + j);
}

// out = Σ weight · value for n vectors of the value, which stay in registers.
template <int n>
HWY_INLINE void sum_block(const float* weights, const float* values, const int32_t* slots, int64_t count,
                          int64_t stride, float* out) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sums[n];
  for (int v = 0; v < n; ++v) sums[v] = hn::Zero(d);
  for (int64_t j = 0; j < count; ++j) {
    const Vector weight = hn::Set(d, weights[j]);
    const float* value = values + slots[j] * stride;
    for (int v = 0; v < n; ++v) sums[v] = hn::MulAdd(weight, hn::LoadU(d, value + v * lanes), sums[v]);
  }
  for (int v = 0; v < n; ++v) hn::StoreU(sums[v], d, out + v * lanes);
}

HWY_INLINE void sum_values(const float* weights, const float* values, const int32_t* slots, int64_t count,
                           int64_t stride, int64_t width, float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t i = 0;
  for (; i + vectors_at_once * lanes <= width; i += vectors_at_once * lanes)
    sum_block<vectors_at_once>(weights, values + i, slots, count, stride, out + i);
  for (; i + lanes <= width; i += lanes) sum_block<1>(weights, values + i, slots, count, stride, out + i);
  for (; i < width; ++i) {
    out[i] = 0;
    for (int64_t j = 0; j < count; ++j) out[i] += weights[j] * values[slots[j] * stride + i];
  }
}

void CachedAttention(const CachedAttentionWork& w, int64_t begin, int64_t end) {
  const int64_t width = w.head_size, group = w.heads / w.kv_heads;
  const int64_t keys = w.kv_heads * width, stride = 2 * keys;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t pair = unit / w.kv_heads, kv_head = unit % w.kv_heads;
    const int32_t* slots = w.visible + w.visible_offsets[pair];
    const int64_t slot_count = w.visible_offsets[pair + 1] - w.visible_offsets[pair];
    const int64_t first_query = w.query_offsets[pair], queries = w.query_offsets[pair + 1] - first_query;
    Scratch scratch(static_cast<size_t>(padded(slot_count) + padded(width)));
    float* weights = scratch.take(padded(slot_count));
    float* query = scratch.take(padded(width));
    const float* key_base = w.cache + kv_head * width;
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t row = slot_count - queries + i;
      const int64_t first = w.sliding_window > 0 ? std::max<int64_t>(0, row - w.sliding_window + 1) : 0;
      const int64_t last = std::max(w.prefix_lengths[pair], row + 1);
      const int64_t visible = (w.sliding_window > 0 ? std::min(last, row + w.sliding_window) : last) - first;
      for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        apply_rope(w, w.q + (first_query + i) * w.q_stride + head * width,
                   w.positions[w.query_rows[first_query + i]], 1, w.scale, query);
        score_keys(query, key_base, slots + first, visible, stride, width, weights);
        softmax(weights, visible);
        sum_values(weights, key_base + keys, slots + first, visible, stride, width,
                   w.out + ((first_query + i) * w.heads + head) * width);
      }
    }
  }
}

}  // namespace calque::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace calque::simd {

HWY_EXPORT(StoreInCache);
HWY_EXPORT(CachedAttention);

void store_in_cache(const CachedAttentionWork& work, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(StoreInCache)(work, begin, end);
}
void cached_attention(const CachedAttentionWork& work, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(CachedAttention)(work, begin, end);
}

}  // namespace calque::simd
#endif

// The loops of attention over a cache: few queries, keys and values wherever they lie in it.
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
  const int64_t keys = w.key_value_heads * w.head_width;
  for (int64_t row = begin; row < end; ++row) {
    const float* from = w.kv + row * w.kv_stride;
    float* to = w.cache + w.slots[row] * 2 * keys;
    for (int64_t head = 0; head < w.key_value_heads; ++head)
      turn(w, from + head * w.head_width, w.positions[row], 1, 1, to + head * w.head_width);
    std::memcpy(to + keys, from + keys, static_cast<size_t>(keys) * sizeof(float));
  }
}

// a · b over `width`.
HWY_INLINE float dot(const float* a, const float* b, int64_t width) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= width; i += lanes) sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  float result = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < width; ++i) result += a[i] * b[i];
  return result;
}

HWY_INLINE void add_scaled(float factor, const float* from, int64_t width, float* to) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Vector factors = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= width; i += lanes)
    hn::StoreU(hn::MulAdd(factors, hn::LoadU(d, from + i), hn::LoadU(d, to + i)), d, to + i);
  for (; i < width; ++i) to[i] += factor * from[i];
}

void CachedAttention(const CachedAttentionWork& w, int64_t begin, int64_t end) {
  const int64_t width = w.head_width, group = w.heads / w.key_value_heads;
  const int64_t keys = w.key_value_heads * width, stride = 2 * keys;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t pair = unit / w.key_value_heads, kv_head = unit % w.key_value_heads;
    const int32_t* seen = w.seen + w.seen_offsets[pair];
    const int64_t seen_count = w.seen_offsets[pair + 1] - w.seen_offsets[pair];
    const int64_t first_query = w.query_offsets[pair], queries = w.query_offsets[pair + 1] - first_query;
    Scratch scratch(static_cast<size_t>(padded(seen_count) + padded(width)));
    float* weights = scratch.take(padded(seen_count));
    float* query = scratch.take(padded(width));
    const float* key_base = w.cache + kv_head * width;
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t visible = std::max(w.prefixes[pair], seen_count - queries + i + 1);
      for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        turn(w, w.q + (first_query + i) * w.q_stride + head * width,
             w.positions[w.query_rows[first_query + i]], 1, w.scale, query);
        for (int64_t j = 0; j < visible; ++j) weights[j] = dot(query, key_base + seen[j] * stride, width);
        softmax(weights, visible, padded(visible));
        float* out = w.out + ((first_query + i) * w.heads + head) * width;
        std::fill(out, out + width, 0.0F);
        for (int64_t j = 0; j < visible; ++j)
          add_scaled(weights[j], key_base + keys + seen[j] * stride, width, out);
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

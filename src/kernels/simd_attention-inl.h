// Helpers shared by flat and cached attention; compiled once for each instruction set.
#if defined(CALQUE_SIMD_ATTENTION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CALQUE_SIMD_ATTENTION_INL_H
#undef CALQUE_SIMD_ATTENTION_INL_H
#else
#define CALQUE_SIMD_ATTENTION_INL_H
#endif

#include <hwy/highway.h>
// (after highway.h)
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "simd_exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace calque::simd::HWY_NAMESPACE {
// `count` rounded up to whole vectors.
inline int64_t padded(int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  return (count + lanes - 1) / lanes * lanes;
}

// Applies RoPE: to = from rotated by the position's angles (direction 1) or rotated back (-1), times a
// factor. Without RoPE tables it only multiplies. `to` may be `from`. Work: a struct with head_size, cosines,
// sines.
template <class Work>
inline void apply_rope(const Work& w, const float* from, int64_t position, float direction, float factor,
                       float* to) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t half = w.head_size / 2;
  if (w.cosines == nullptr) {
    for (int64_t i = 0; i < w.head_size; ++i) to[i] = from[i] * factor;
    return;
  }
  const float* cosines = w.cosines + position * half;
  const float* sines = w.sines + position * half;
  const float signed_factor = factor * direction;
  int64_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    const Vector a = hn::LoadU(d, from + i), b = hn::LoadU(d, from + i + half);
    const Vector cosine = hn::Mul(hn::LoadU(d, cosines + i), hn::Set(d, factor));
    const Vector sine = hn::Mul(hn::LoadU(d, sines + i), hn::Set(d, signed_factor));
    hn::StoreU(hn::MulSub(a, cosine, hn::Mul(b, sine)), d, to + i);
    hn::StoreU(hn::MulAdd(b, cosine, hn::Mul(a, sine)), d, to + i + half);
  }
  for (; i < half; ++i) {
    const float a = from[i], b = from[i + half], cosine = cosines[i] * factor,
                sine = sines[i] * signed_factor;
    to[i] = a * cosine - b * sine;
    to[i + half] = b * cosine + a * sine;
  }
}

constexpr float masked_score = -1e30F;  // score of masked rows; its exponential is exactly 0

// State of one query's online softmax (Milakov and Gimelshein, 2018).
struct RunningSoftmax {
  float largest, sum;
};

// One step of the online softmax: replaces the scores of `visible` rows by exp(score - largest so far), and
// pads with zeros up to a whole vector. Returns the factor by which the sums so far must be multiplied.
inline float update_softmax(float* scores, int64_t visible, RunningSoftmax& running) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = padded(visible);
  std::fill(scores + visible, scores + whole, masked_score);
  Vector maximum = hn::LoadU(d, scores);
  for (int64_t j = lanes; j < whole; j += lanes) maximum = hn::Max(maximum, hn::LoadU(d, scores + j));
  const float largest = std::max(running.largest, hn::GetLane(hn::MaxOfLanes(d, maximum)));
  const Vector shift = hn::Set(d, largest);
  Vector sum = hn::Zero(d);
  for (int64_t j = 0; j < whole; j += lanes) {
    const Vector value = exponential(hn::Sub(hn::LoadU(d, scores + j), shift));
    hn::StoreU(value, d, scores + j);
    sum = hn::Add(sum, value);
  }
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

// Softmax of the first `visible` scores, in place; pads with zeros up to a whole vector.
inline void softmax(float* scores, int64_t visible) {
  RunningSoftmax running{masked_score, 0};
  update_softmax(scores, visible, running);
  scale_row(scores, padded(visible), 1 / running.sum);
}

}  // namespace calque::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

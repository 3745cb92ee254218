// What the loops of attention share, flat and cached alike; compiled once for each instruction set.
#if defined(CALQUE_SIMD_ATTENTION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CALQUE_SIMD_ATTENTION_INL_H
#undef CALQUE_SIMD_ATTENTION_INL_H
#else
#define CALQUE_SIMD_ATTENTION_INL_H
#endif

#include <hwy/highway.h>
// (after highway.h)
#include <hwy/contrib/math/math-inl.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace calque::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

inline int64_t padded(int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  return (count + lanes - 1) / lanes * lanes;
}

// to = from turned by the position's angles (direction 1) or back (-1), times a factor. `to` may be `from`.
// Work: anything with head_width, cosines and sines.
template <class Work>
inline void turn(const Work& w, const float* from, int64_t position, float direction, float factor,
                 float* to) {
  const int64_t half = w.head_width / 2;
  if (w.cosines == nullptr) {
    for (int64_t i = 0; i < w.head_width; ++i) to[i] = from[i] * factor;
    return;
  }
  const float* cosines = w.cosines + position * half;
  const float* sines = w.sines + position * half;
  for (int64_t i = 0; i < half; ++i) {
    const float a = from[i], b = from[i + half], sine = sines[i] * direction;
    to[i] = (a * cosines[i] - b * sine) * factor;
    to[i + half] = (b * cosines[i] + a * sine) * factor;
  }
}

// In place: scores to weights among the visible, zeros behind; gives the log of the denominator.
inline float softmax(float* scores, int64_t visible, int64_t stride) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float largest = scores[0];
  for (int64_t j = 1; j < visible; ++j) largest = std::max(largest, scores[j]);
  std::fill(scores + visible, scores + stride, -1e30F);
  Vector sums = hn::Zero(d);
  const Vector shift = hn::Set(d, largest);
  for (int64_t j = 0; j < stride; j += lanes) {
    const Vector value = hn::Exp(d, hn::Max(hn::Sub(hn::LoadU(d, scores + j), shift), hn::Set(d, -87.0F)));
    hn::StoreU(value, d, scores + j);
  }
  std::fill(scores + visible, scores + stride, 0.0F);
  for (int64_t j = 0; j < stride; j += lanes) sums = hn::Add(sums, hn::LoadU(d, scores + j));
  const float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  const Vector inverse = hn::Set(d, 1.0F / sum);
  for (int64_t j = 0; j < stride; j += lanes)
    hn::StoreU(hn::Mul(hn::LoadU(d, scores + j), inverse), d, scores + j);
  return largest + std::log(sum);
}

}  // namespace calque::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// What the loops of attention share, flat and cached alike; compiled once for each instruction set.
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
inline int64_t padded(int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  return (count + lanes - 1) / lanes * lanes;
}

// to = from turned by the position's angles (direction 1) or back (-1), times a factor. `to` may be `from`.
// Work: anything with head_width, cosines and sines.
template <class Work>
inline void turn(const Work& w, const float* from, int64_t position, float direction, float factor,
                 float* to) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t half = w.head_width / 2;
  if (w.cosines == nullptr) {
    for (int64_t i = 0; i < w.head_width; ++i) to[i] = from[i] * factor;
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

constexpr float hidden_score = -1e30F;  // of what a query does not see

// How far a query's softmax has come.
struct Running {
  float largest, sum;
};

// Scores of visible rows to weights, relative to the largest so far; zeros behind up to a whole vector. Gives
// what the sums before are to be multiplied with.
inline float soften(float* scores, int64_t visible, Running& running) {
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

// In place: scores to weights among the visible, zeros behind up to a whole vector.
inline void softmax(float* scores, int64_t visible) {
  Running running{hidden_score, 0};
  soften(scores, visible, running);
  scale_row(scores, padded(visible), 1 / running.sum);
}

}  // namespace calque::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

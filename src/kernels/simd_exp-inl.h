// The exponential function of the kernels; compiled once for each instruction set. Highway's own also handles
// subnormal results, which the kernels do not need, and takes twice the time.
#if defined(CALQUE_SIMD_EXP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CALQUE_SIMD_EXP_INL_H
#undef CALQUE_SIMD_EXP_INL_H
#else
#define CALQUE_SIMD_EXP_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace calque::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

// e^x for x ≤ 88, to 2 units in the last place; exactly 0 below -87.7. e^x = 2ⁿ · e^r, where n is the integer
// nearest to x / ln 2 and r = x - n · ln 2 is small enough for a polynomial.
HWY_INLINE Vector exponential(Vector x) {
  const Floats d;
  const hn::RebindToSigned<Floats> integers;
  const Vector bounded = hn::Max(x, hn::Set(d, -88.02F));  // gives n = -127, for which 2ⁿ below is 0
  const Vector n = hn::Round(hn::Mul(bounded, hn::Set(d, 1.44269504F)));
  // ln 2 in two parts (Cody and Waite, 1980): the first has few enough bits that n times it is exact.
  const Vector r =
      hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), hn::NegMulAdd(n, hn::Set(d, 0.693359375F), bounded));
  Vector p = hn::MulAdd(hn::Set(d, 1.9875691500e-4F), r, hn::Set(d, 1.3981999507e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1F));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(d, 1.0F)));
  const auto exponent = hn::Add(hn::ConvertTo(integers, n), hn::Set(integers, 127));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(exponent)));
}

}  // namespace calque::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

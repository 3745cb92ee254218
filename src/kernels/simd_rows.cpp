// The inner loops of the kernels that work row by row: norm, gated activation, cross-entropy.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// (after highway.h)
#include <algorithm>
#include <cmath>
#include <limits>

#include "calque/kernels/simd_loops.h"
#include "simd_exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace calque::simd::HWY_NAMESPACE {
// Calls each(i, load, store) over a row of `width`: whole vectors first, the rest through a small buffer, so
// that the same code serves both.
template <class Body>
HWY_INLINE void for_vectors(int64_t width, Body&& body) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= width; i += lanes) body(i, lanes);
  if (i < width) body(i, width - i);
}

HWY_INLINE Vector load(const float* from, int64_t count) {
  const Floats d;
  if (count == static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)] = {};
  std::copy(from, from + count, buffer);
  return hn::Load(d, buffer);
}

HWY_INLINE void store(Vector value, float* to, int64_t count) {
  const Floats d;
  if (count == static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(value, d, to);
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(value, d, buffer);
  std::copy(buffer, buffer + count, to);
}

HWY_INLINE float total(Vector value) { return hn::GetLane(hn::SumOfLanes(Floats(), value)); }

void RmsNormForward(const float* x, const float* weight, float epsilon, int64_t width, float* y,
                    float* inverses, int64_t begin, int64_t end) {
  const Floats d;
  for (int64_t row = begin; row < end; ++row) {
    const float* from = x + row * width;
    Vector squares = hn::Zero(d);
    for_vectors(width, [&](int64_t i, int64_t n) {
      const Vector value = load(from + i, n);
      squares = hn::MulAdd(value, value, squares);
    });
    const float inverse = 1.0F / std::sqrt(total(squares) / static_cast<float>(width) + epsilon);
    inverses[row] = inverse;
    const Vector factor = hn::Set(d, inverse);
    for_vectors(width, [&](int64_t i, int64_t n) {
      store(hn::Mul(hn::Mul(load(from + i, n), factor), load(weight + i, n)), y + row * width + i, n);
    });
  }
}

// With u = dy · weight and r the inverse: dx = r · (u - x · r² · mean(u · x)).
void RmsNormBackward(const float* x, const float* weight, const float* inverses, const float* dy,
                     int64_t width, float* dx, float* d_weight, int64_t begin, int64_t end) {
  const Floats d;
  for (int64_t row = begin; row < end; ++row) {
    const float* from = x + row * width;
    const float* gradient = dy + row * width;
    Vector products = hn::Zero(d);
    const Vector inverse = hn::Set(d, inverses[row]);
    for_vectors(width, [&](int64_t i, int64_t n) {
      const Vector value = load(from + i, n), g = load(gradient + i, n);
      products = hn::MulAdd(hn::Mul(g, load(weight + i, n)), value, products);
      store(hn::MulAdd(hn::Mul(g, value), inverse, load(d_weight + i, n)), d_weight + i, n);
    });
    const float pull = total(products) / static_cast<float>(width) * inverses[row] * inverses[row];
    const Vector factor = hn::Set(d, pull);
    for_vectors(width, [&](int64_t i, int64_t n) {
      const Vector u = hn::Mul(load(gradient + i, n), load(weight + i, n));
      store(hn::Mul(inverse, hn::NegMulAdd(load(from + i, n), factor, u)), dx + row * width + i, n);
    });
  }
}

void LayerNormForward(const float* x, const float* weight, const float* bias, float epsilon, int64_t width,
                      float* y, int64_t begin, int64_t end) {
  const Floats d;
  for (int64_t row = begin; row < end; ++row) {
    const float* from = x + row * width;
    Vector sums = hn::Zero(d), squares = hn::Zero(d);
    for_vectors(width, [&](int64_t i, int64_t n) { sums = hn::Add(sums, load(from + i, n)); });
    const float mean = total(sums) / static_cast<float>(width);
    for_vectors(width, [&](int64_t i, int64_t n) {
      const Vector away = hn::Sub(load(from + i, n), hn::Set(d, mean));
      // The lanes behind the end of a row hold zeros, which are away from the mean too.
      squares = hn::MulAdd(away, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n)), away), squares);
    });
    const float inverse = 1.0F / std::sqrt(total(squares) / static_cast<float>(width) + epsilon);
    for_vectors(width, [&](int64_t i, int64_t n) {
      const Vector even = hn::Mul(hn::Sub(load(from + i, n), hn::Set(d, mean)), hn::Set(d, inverse));
      store(hn::MulAdd(even, load(weight + i, n), load(bias + i, n)), y + row * width + i, n);
    });
  }
}

HWY_INLINE Vector sigmoid(Vector x) {
  const Floats d;
  const Vector one = hn::Set(d, 1.0F);
  const Vector bounded = hn::Min(hn::Max(x, hn::Set(d, -87.0F)), hn::Set(d, 87.0F));
  return hn::Div(one, hn::Add(one, exponential(hn::Neg(bounded))));
}

// gelu(x) = x · sigmoid(2 · √(2/π) · (x + 0.044715 x³)), which is the tanh form written with a sigmoid.
constexpr float gelu_slope = 1.5957691216057308F;
constexpr float gelu_cubic = 0.044715F;

HWY_INLINE Vector gelu_inner(Vector x) {
  const Floats d;
  return hn::Mul(hn::Set(d, gelu_slope), hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, gelu_cubic), x));
}

void GeluForward(const float* x, int64_t count, float* y) {
  for_vectors(count, [&](int64_t i, int64_t n) {
    const Vector value = load(x + i, n);
    store(hn::Mul(value, sigmoid(gelu_inner(value))), y + i, n);
  });
}

void GatedForward(const float* x, bool gelu, int64_t width, float* y, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* gates = x + row * 2 * width;
    for_vectors(width, [&](int64_t i, int64_t n) {
      const Vector gate = load(gates + i, n);
      const Vector bent = hn::Mul(gate, sigmoid(gelu ? gelu_inner(gate) : gate));
      store(hn::Mul(bent, load(gates + width + i, n)), y + row * width + i, n);
    });
  }
}

// For z·sigmoid(s(z)): the slope is σ + z·σ·(1 - σ)·s'(z).
void GatedBackward(const float* x, const float* dy, bool gelu, int64_t width, float* dx, int64_t begin,
                   int64_t end) {
  const Floats d;
  const Vector one = hn::Set(d, 1.0F);
  for (int64_t row = begin; row < end; ++row) {
    const float* gates = x + row * 2 * width;
    float* d_gates = dx + row * 2 * width;
    for_vectors(width, [&](int64_t i, int64_t n) {
      const Vector gate = load(gates + i, n), value = load(gates + width + i, n),
                   g = load(dy + row * width + i, n);
      const Vector s = sigmoid(gelu ? gelu_inner(gate) : gate);
      const Vector inner_slope =
          gelu ? hn::Mul(hn::Set(d, gelu_slope),
                         hn::MulAdd(hn::Mul(gate, gate), hn::Set(d, 3 * gelu_cubic), one))
               : one;
      const Vector bent = hn::Mul(gate, s);
      const Vector slope = hn::MulAdd(hn::Mul(bent, hn::Sub(one, s)), inner_slope, s);
      store(hn::Mul(hn::Mul(g, value), slope), d_gates + i, n);
      store(hn::Mul(g, bent), d_gates + width + i, n);
    });
  }
}

void CrossEntropyRows(float* logits, const int64_t* labels, float smoothing, int64_t vocabulary,
                      double* losses, int64_t begin, int64_t end) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = vocabulary / lanes * lanes;
  for (int64_t row = begin; row < end; ++row) {
    float* values = logits + row * vocabulary;
    Vector largest_vector = hn::Set(d, -1e30F), sum_vector = hn::Zero(d);
    for (int64_t i = 0; i < whole; i += lanes) {
      const Vector value = hn::LoadU(d, values + i);
      largest_vector = hn::Max(largest_vector, value);
      sum_vector = hn::Add(sum_vector, value);
    }
    float largest = hn::GetLane(hn::MaxOfLanes(d, largest_vector)), logit_sum = total(sum_vector);
    for (int64_t i = whole; i < vocabulary; ++i) {
      largest = std::max(largest, values[i]);
      logit_sum += values[i];
    }
    const float label_logit = values[labels[row]];
    const Vector shift = hn::Set(d, largest);
    Vector denominators = hn::Zero(d);
    for (int64_t i = 0; i < whole; i += lanes) {
      const Vector e = exponential(hn::Sub(hn::LoadU(d, values + i), shift));
      hn::StoreU(e, d, values + i);
      denominators = hn::Add(denominators, e);
    }
    float denominator = total(denominators);
    for (int64_t i = whole; i < vocabulary; ++i) {
      values[i] = std::exp(values[i] - largest);
      denominator += values[i];
    }
    const double log_sum = static_cast<double>(largest) + std::log(static_cast<double>(denominator));
    const double plain = log_sum - label_logit;
    const double spread =
        log_sum - static_cast<double>(logit_sum) / static_cast<double>(vocabulary);  // mean of -log p
    losses[2 * row] = (1.0 - smoothing) * plain + smoothing * spread;
    losses[2 * row + 1] = plain;
    const float even = smoothing / static_cast<float>(vocabulary);
    const Vector inverse = hn::Set(d, 1.0F / denominator), even_vector = hn::Set(d, even);
    for (int64_t i = 0; i < whole; i += lanes) {
      hn::StoreU(hn::MulSub(hn::LoadU(d, values + i), inverse, even_vector), d, values + i);
    }
    for (int64_t i = whole; i < vocabulary; ++i) values[i] = values[i] / denominator - even;
    values[labels[row]] -= 1.0F - smoothing;
  }
}

void LogSumRows(const float* rows, int64_t vocabulary, float* sums, int64_t begin, int64_t end) {
  const Floats d;
  for (int64_t row = begin; row < end; ++row) {
    const float* values = rows + row * vocabulary;
    float largest = values[0];
    Vector most = hn::Set(d, largest);
    for_vectors(vocabulary, [&](int64_t i, int64_t n) {
      if (n == static_cast<int64_t>(hn::Lanes(d))) {
        most = hn::Max(most, hn::LoadU(d, values + i));
      } else {
        for (int64_t j = 0; j < n; ++j) largest = std::max(largest, values[i + j]);
      }
    });
    largest = std::max(largest, hn::GetLane(hn::MaxOfLanes(d, most)));
    const Vector shift = hn::Set(d, largest);
    Vector denominators = hn::Zero(d);
    float rest = 0;
    for_vectors(vocabulary, [&](int64_t i, int64_t n) {
      if (n == static_cast<int64_t>(hn::Lanes(d))) {
        denominators = hn::Add(denominators, exponential(hn::Sub(hn::LoadU(d, values + i), shift)));
      } else {
        for (int64_t j = 0; j < n; ++j) rest += std::exp(values[i + j] - largest);
      }
    });
    sums[row] = largest + std::log(total(denominators) + rest);
  }
}

void TopOfRows(const float* rows, int64_t vocabulary, int64_t count, float* values, int32_t* indices,
               int64_t begin, int64_t end) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  for (int64_t row = begin; row < end; ++row) {
    const float* from = rows + row * vocabulary;
    float* best = values + row * count;
    int32_t* places = indices + row * count;
    std::fill(best, best + count, lowest);
    std::fill(places, places + count, -1);
    const auto offer = [&](int64_t i) {
      const float value = from[i];
      if (!(value > best[count - 1])) return;
      int64_t at = count - 1;
      for (; at > 0 && value > best[at - 1]; --at) {
        best[at] = best[at - 1];
        places[at] = places[at - 1];
      }
      best[at] = value;
      places[at] = static_cast<int32_t>(i);
    };
    int64_t i = 0;
    for (; i + lanes <= vocabulary; i += lanes) {
      // Most vectors hold nothing that is good enough.
      if (hn::AllFalse(d, hn::Gt(hn::LoadU(d, from + i), hn::Set(d, best[count - 1])))) continue;
      for (int64_t j = i; j < i + lanes; ++j) offer(j);
    }
    for (; i < vocabulary; ++i) offer(i);
  }
}

}  // namespace calque::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace calque::simd {

HWY_EXPORT(RmsNormForward);
HWY_EXPORT(RmsNormBackward);
HWY_EXPORT(LayerNormForward);
HWY_EXPORT(GeluForward);
HWY_EXPORT(GatedForward);
HWY_EXPORT(GatedBackward);
HWY_EXPORT(CrossEntropyRows);
HWY_EXPORT(LogSumRows);
HWY_EXPORT(TopOfRows);

void rms_norm_forward(const float* x, const float* weight, float epsilon, int64_t width, float* y,
                      float* inverses, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(RmsNormForward)(x, weight, epsilon, width, y, inverses, begin, end);
}
void rms_norm_backward(const float* x, const float* weight, const float* inverses, const float* dy,
                       int64_t width, float* dx, float* d_weight, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(RmsNormBackward)(x, weight, inverses, dy, width, dx, d_weight, begin, end);
}
void layer_norm_forward(const float* x, const float* weight, const float* bias, float epsilon, int64_t width,
                        float* y, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(LayerNormForward)(x, weight, bias, epsilon, width, y, begin, end);
}
void gelu_forward(const float* x, int64_t count, float* y) { HWY_DYNAMIC_DISPATCH(GeluForward)(x, count, y); }
void gated_forward(const float* x, bool gelu, int64_t width, float* y, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(GatedForward)(x, gelu, width, y, begin, end);
}
void gated_backward(const float* x, const float* dy, bool gelu, int64_t width, float* dx, int64_t begin,
                    int64_t end) {
  HWY_DYNAMIC_DISPATCH(GatedBackward)(x, dy, gelu, width, dx, begin, end);
}
void cross_entropy_rows(float* logits, const int64_t* labels, float smoothing, int64_t vocabulary,
                        double* losses, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(CrossEntropyRows)(logits, labels, smoothing, vocabulary, losses, begin, end);
}
void log_sum_rows(const float* rows, int64_t vocabulary, float* sums, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(LogSumRows)(rows, vocabulary, sums, begin, end);
}
void top_of_rows(const float* rows, int64_t vocabulary, int64_t count, float* values, int32_t* indices,
                 int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(TopOfRows)(rows, vocabulary, count, values, indices, begin, end);
}

}  // namespace calque::simd
#endif

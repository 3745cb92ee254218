// Inner loops of the kernels that work row by row: norms, activations, cross-entropy, top-k.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// (after highway.h)
#include <algorithm>
#include <cmath>
#include <limits>

#include "simd_exp-inl.h"
#include "simd_loops.h"

HWY_BEFORE_NAMESPACE();
namespace calque::simd::HWY_NAMESPACE {
// Calls body(i, count) for each vector of a row of `width`. The last one may have fewer elements than a
// vector; load and store below handle both cases.
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
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];  // mutate: memory only
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
    if (inverses != nullptr) inverses[row] = inverse;
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
    const float projection = total(products) / static_cast<float>(width) * inverses[row] * inverses[row];
    const Vector factor = hn::Set(d, projection);
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
      const Vector deviation = hn::Sub(load(from + i, n), hn::Set(d, mean));
      // Lanes past the end of the row hold zeros, which must not count as deviations.
      squares = hn::MulAdd(deviation, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n)), deviation),
                           squares);
    });
    const float inverse = 1.0F / std::sqrt(total(squares) / static_cast<float>(width) + epsilon);
    for_vectors(width, [&](int64_t i, int64_t n) {
      const Vector normalised = hn::Mul(hn::Sub(load(from + i, n), hn::Set(d, mean)), hn::Set(d, inverse));
      store(hn::MulAdd(normalised, load(weight + i, n), load(bias + i, n)), y + row * width + i, n);
    });
  }
}

HWY_INLINE Vector sigmoid(Vector x) {
  const Floats d;
  const Vector one = hn::Set(d, 1.0F);
  const Vector bounded = hn::Min(hn::Max(x, hn::Set(d, -87.0F)), hn::Set(d, 87.0F));
  return hn::Div(one, hn::Add(one, exponential(hn::Neg(bounded))));
}

// gelu(x) = x · sigmoid(2 · √(2/π) · (x + 0.044715 x³)): the tanh approximation, written with a sigmoid.
constexpr float gelu_scale = 1.5957691216057308F;
constexpr float gelu_cubic = 0.044715F;

HWY_INLINE Vector gelu_inner(Vector x) {
  const Floats d;
  return hn::Mul(hn::Set(d, gelu_scale), hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, gelu_cubic), x));
}

void Add(const float* x, int64_t count, float* y) {
  for_vectors(count, [&](int64_t i, int64_t n) { store(hn::Add(load(y + i, n), load(x + i, n)), y + i, n); });
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
      const Vector activated = hn::Mul(gate, sigmoid(gelu ? gelu_inner(gate) : gate));
      store(hn::Mul(activated, load(gates + width + i, n)), y + row * width + i, n);
    });
  }
}

// The derivative of z · σ(s(z)) is σ + z · σ · (1 - σ) · s'(z).
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
      const Vector inner_derivative =
          gelu ? hn::Mul(hn::Set(d, gelu_scale),
                         hn::MulAdd(hn::Mul(gate, gate), hn::Set(d, 3 * gelu_cubic), one))
               : one;
      const Vector activated = hn::Mul(gate, s);
      const Vector derivative = hn::MulAdd(hn::Mul(activated, hn::Sub(one, s)), inner_derivative, s);
      store(hn::Mul(hn::Mul(g, value), derivative), d_gates + i, n);
      store(hn::Mul(g, activated), d_gates + width + i, n);
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
    const double uniform =
        log_sum - static_cast<double>(logit_sum) / static_cast<double>(vocabulary);  // mean of -log p
    losses[2 * row] = (1.0 - smoothing) * plain + smoothing * uniform;
    losses[2 * row + 1] = plain;
    const float uniform_share = smoothing / static_cast<float>(vocabulary);
    const Vector inverse = hn::Set(d, 1.0F / denominator), uniform_vector = hn::Set(d, uniform_share);
    for (int64_t i = 0; i < whole; i += lanes) {
      hn::StoreU(hn::MulSub(hn::LoadU(d, values + i), inverse, uniform_vector), d, values + i);
    }
    for (int64_t i = whole; i < vocabulary; ++i) values[i] = values[i] / denominator - uniform_share;
    values[labels[row]] -= 1.0F - smoothing;
  }
}

void LogSumExpRows(const float* rows, int64_t vocabulary, float* sums, int64_t begin, int64_t end) {
  const Floats d;
  for (int64_t row = begin; row < end; ++row) {
    const float* values = rows + row * vocabulary;
    float largest = values[0];
    Vector maximum = hn::Set(d, largest);
    for_vectors(vocabulary, [&](int64_t i, int64_t n) {
      if (n == static_cast<int64_t>(hn::Lanes(d))) {
        maximum = hn::Max(maximum, hn::LoadU(d, values + i));
      } else {
        for (int64_t j = 0; j < n; ++j) largest = std::max(largest, values[i + j]);
      }
    });
    largest = std::max(largest, hn::GetLane(hn::MaxOfLanes(d, maximum)));
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

void TopKRows(const float* rows, int64_t vocabulary, int64_t count, float* values, int32_t* indices,
              int64_t begin, int64_t end) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  for (int64_t row = begin; row < end; ++row) {
    const float* from = rows + row * vocabulary;
    float* best_values = values + row * count;
    int32_t* best_indices = indices + row * count;
    std::fill(best_values, best_values + count, lowest);
    std::fill(best_indices, best_indices + count, -1);
    const auto insert = [&](int64_t i) {
      const float value = from[i];
      if (!(value > best_values[count - 1])) return;
      int64_t at = count - 1;
      for (; at > 0 && value > best_values[at - 1]; --at) {
        best_values[at] = best_values[at - 1];
        best_indices[at] = best_indices[at - 1];
      }
      best_values[at] = value;
      best_indices[at] = static_cast<int32_t>(i);
    };
    int64_t i = 0;
    for (; i + lanes <= vocabulary; i += lanes) {
      // Most vectors hold no value above the smallest of the current top `count`.
      if (hn::AllFalse(d, hn::Gt(hn::LoadU(d, from + i), hn::Set(d, best_values[count - 1])))) continue;
      for (int64_t j = i; j < i + lanes; ++j) insert(j);
    }
    for (; i < vocabulary; ++i) insert(i);
  }
}

}  // namespace calque::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace calque::simd {

HWY_EXPORT(RmsNormForward);
HWY_EXPORT(RmsNormBackward);
HWY_EXPORT(LayerNormForward);
HWY_EXPORT(Add);
HWY_EXPORT(GeluForward);
HWY_EXPORT(GatedForward);
HWY_EXPORT(GatedBackward);
HWY_EXPORT(CrossEntropyRows);
HWY_EXPORT(LogSumExpRows);
HWY_EXPORT(TopKRows);

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
void add(const float* x, int64_t count, float* y) { HWY_DYNAMIC_DISPATCH(Add)(x, count, y); }
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
void log_sum_exp_rows(const float* rows, int64_t vocabulary, float* sums, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(LogSumExpRows)(rows, vocabulary, sums, begin, end);
}
void top_k_rows(const float* rows, int64_t vocabulary, int64_t count, float* values, int32_t* indices,
                int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(TopKRows)(rows, vocabulary, count, values, indices, begin, end);
}

}  // namespace calque::simd
#endif

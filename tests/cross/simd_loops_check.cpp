// The SIMD loops against plain loops, without LibTorch: for processors that are only emulated
// (tools/test-arm64). Prints the largest difference of each loop; exits with 1 if one is too large.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "simd_loops.h"

// Debian's Highway library is for this machine's processor; the loops need these two functions of it.
namespace hwy {
using AllocPtr = void* (*)(void*, size_t);
using FreePtr = void (*)(void*, void*);
void* AllocateAlignedBytes(size_t bytes, AllocPtr, void*) {
  return std::aligned_alloc(128, (bytes + 127) / 128 * 128);
}
void FreeAlignedBytes(const void* pointer, FreePtr, void*) { std::free(const_cast<void*>(pointer)); }
}  // namespace hwy

namespace {

using Floats = std::vector<float>;
bool failed = false;

Floats random_floats(size_t count, float scale = 1) {
  static std::mt19937 generator(7);
  std::normal_distribution<float> normal(0, scale);
  Floats values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

void report(const char* name, double difference, double allowed) {
  const bool good = difference <= allowed;
  std::printf("%-22s %.2g%s\n", name, difference, good ? "" : "  TOO LARGE");
  failed = failed || !good;
}

double worst(const Floats& found, const std::vector<double>& expected) {
  double difference = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    difference = std::max(difference, std::abs(static_cast<double>(found[i]) - expected[i]) /
                                          std::max(1.0, std::abs(expected[i])));
  return difference;
}

void check_rows() {
  constexpr int64_t rows = 3, width = 37;
  const Floats x = random_floats(rows * width), weight = random_floats(width), bias = random_floats(width);
  Floats rms(rows * width), layer(rows * width), gelu(rows * width);
  calque::simd::rms_norm_forward(x.data(), weight.data(), 1e-5F, width, rms.data(), nullptr, 0, rows);
  calque::simd::layer_norm_forward(x.data(), weight.data(), bias.data(), 1e-5F, width, layer.data(), 0, rows);
  calque::simd::gelu_forward(x.data(), rows * width, gelu.data());
  std::vector<double> rms_expected, layer_expected, gelu_expected;
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x.data() + row * width;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < width; ++i) {
      sum += from[i];
      squares += static_cast<double>(from[i]) * from[i];
    }
    const double mean = sum / width, variance = squares / width - mean * mean;
    for (int64_t i = 0; i < width; ++i) {
      const double value = from[i];
      rms_expected.push_back(value / std::sqrt(squares / width + 1e-5) * weight[static_cast<size_t>(i)]);
      layer_expected.push_back((value - mean) / std::sqrt(variance + 1e-5) * weight[static_cast<size_t>(i)] +
                               bias[static_cast<size_t>(i)]);
      gelu_expected.push_back(
          0.5 * value * (1 + std::tanh(0.7978845608028654 * (value + 0.044715 * value * value * value))));
    }
  }
  report("rms_norm_forward", worst(rms, rms_expected), 1e-5);
  report("layer_norm_forward", worst(layer, layer_expected), 1e-5);
  report("gelu_forward", worst(gelu, gelu_expected), 1e-5);
}

void check_gated_and_sums() {
  constexpr int64_t rows = 2, width = 21, vocabulary = 101;
  const Floats x = random_floats(rows * 2 * width), logits = random_floats(rows * vocabulary, 4);
  Floats gated(rows * width), sums(rows), added = x;
  calque::simd::gated_forward(x.data(), false, width, gated.data(), 0, rows);
  calque::simd::log_sum_exp_rows(logits.data(), vocabulary, sums.data(), 0, rows);
  calque::simd::add(x.data(), static_cast<int64_t>(x.size()), added.data());
  std::vector<double> gated_expected, sums_expected, added_expected;
  for (const float value : x) added_expected.push_back(2.0 * value);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < width; ++i) {
      const double gate = x[static_cast<size_t>(row * 2 * width + i)];
      gated_expected.push_back(gate / (1 + std::exp(-gate)) *
                               x[static_cast<size_t>((row * 2 + 1) * width + i)]);
    }
    double sum = 0;
    for (int64_t i = 0; i < vocabulary; ++i)
      sum += std::exp(static_cast<double>(logits[static_cast<size_t>(row * vocabulary + i)]));
    sums_expected.push_back(std::log(sum));
  }
  report("gated_forward", worst(gated, gated_expected), 1e-5);
  report("log_sum_exp_rows", worst(sums, sums_expected), 1e-5);
  report("add", worst(added, added_expected), 0);

  constexpr int64_t count = 5;
  Floats values(rows * count);
  std::vector<int32_t> indices(rows * count);
  calque::simd::top_k_rows(logits.data(), vocabulary, count, values.data(), indices.data(), 0, rows);
  double wrong = 0;
  for (int64_t row = 0; row < rows; ++row) {
    Floats sorted(logits.begin() + row * vocabulary, logits.begin() + (row + 1) * vocabulary);
    std::sort(sorted.rbegin(), sorted.rend());
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(row * count + i);
      wrong += values[at] != sorted[static_cast<size_t>(i)] ||
               logits[static_cast<size_t>(row * vocabulary + indices[at])] != values[at];
    }
  }
  report("top_k_rows", wrong, 0);
}

void check_packed_product() {
  constexpr int64_t rows = 13, inputs = 45, outputs = 32;
  constexpr int64_t columns = calque::simd::packed_columns, pairs = (inputs + 1) / 2;
  const Floats x = random_floats(rows * inputs), weight = random_floats(outputs * inputs),
               bias = random_floats(outputs);
  const auto at = [&](int64_t output, int64_t input) {
    return input < inputs ? weight[static_cast<size_t>(output * inputs + input)] : 0.0F;
  };
  Floats panels(static_cast<size_t>(outputs * inputs)), scales(outputs), row_scales(rows), y(rows * outputs);
  std::vector<int8_t> quantised(static_cast<size_t>(outputs * pairs * 2));
  std::vector<int16_t> rounded(static_cast<size_t>(rows * pairs * 2));
  for (int64_t output = 0; output < outputs; ++output) {
    const int64_t panel = output / columns, column = output % columns;
    float largest = 0;
    for (int64_t input = 0; input < inputs; ++input) {
      panels[static_cast<size_t>((panel * inputs + input) * columns + column)] = at(output, input);
      largest = std::max(largest, std::abs(at(output, input)));
    }
    scales[static_cast<size_t>(output)] = largest / 127;
    for (int64_t input = 0; input < 2 * pairs; ++input)
      quantised[static_cast<size_t>(((panel * pairs + input / 2) * columns + column) * 2 + input % 2)] =
          static_cast<int8_t>(std::lround(at(output, input) / scales[static_cast<size_t>(output)]));
  }
  std::vector<double> expected;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t output = 0; output < outputs; ++output) {
      double sum = bias[static_cast<size_t>(output)];
      for (int64_t input = 0; input < inputs; ++input)
        sum += static_cast<double>(x[static_cast<size_t>(row * inputs + input)]) * at(output, input);
      expected.push_back(sum);
    }
  }
  calque::simd::PackedWork work{};
  work.panels = panels.data();
  work.scales = scales.data();
  work.bias = bias.data();
  work.inputs = inputs;
  work.outputs = outputs;
  work.x = x.data();
  work.rows = rows;
  work.y = y.data();
  calque::simd::packed_float32(work, 0, outputs / columns);
  report("packed_float32", worst(y, expected), 1e-5);
  calque::simd::quantise_rows(x.data(), inputs, rows, 30000, rounded.data(), row_scales.data());
  work.panels = quantised.data();
  work.quantised = rounded.data();
  work.row_scales = row_scales.data();
  calque::simd::packed_int8(work, 0, outputs / columns);
  report("packed_int8", worst(y, expected), 0.1);  // the weights are rounded to 8 bits
}

// Causal attention over one sequence, one head, without RoPE.
void check_attention() {
  constexpr int64_t rows = 70, size = 8;
  const Floats q = random_floats(rows * size), k = random_floats(rows * size), v = random_floats(rows * size);
  Floats out(rows * size), log_sums(rows);
  std::vector<int64_t> offsets = {0, rows}, prefix_ends = {0}, positions(rows);
  calque::simd::AttentionWork work{};
  work.offsets = offsets.data();
  work.prefix_ends = prefix_ends.data();
  work.query_offsets = offsets.data();
  work.positions = positions.data();
  work.heads = work.kv_heads = 1;
  work.head_size = size;
  work.scale = 0.35F;
  work.q = q.data();
  work.k = k.data();
  work.v = v.data();
  work.q_stride = work.kv_stride = size;
  work.out = out.data();
  work.log_sums = log_sums.data();
  calque::simd::attention_forward(work, 0, 1);
  std::vector<double> expected;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<double> mixed(size, 0.0);
    double sum = 0;
    for (int64_t key = 0; key <= row; ++key) {
      double score = 0;
      for (int64_t i = 0; i < size; ++i)
        score += static_cast<double>(q[static_cast<size_t>(row * size + i)]) *
                 k[static_cast<size_t>(key * size + i)];
      const double share = std::exp(0.35 * score);
      sum += share;
      for (int64_t i = 0; i < size; ++i)
        mixed[static_cast<size_t>(i)] += share * v[static_cast<size_t>(key * size + i)];
    }
    for (const double value : mixed) expected.push_back(value / sum);
  }
  report("attention_forward", worst(out, expected), 1e-4);
}

}  // namespace

int main() {
  check_rows();
  check_gated_and_sums();
  check_packed_product();
  check_attention();
  return failed ? 1 : 0;
}

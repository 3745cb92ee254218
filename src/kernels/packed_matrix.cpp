#include "calque/kernels/packed_matrix.h"

#include <ATen/record_function.h>
#include <torch/types.h>

#include <algorithm>
#include <limits>

#include "activation_memory.h"
#include "calque/kernels/threads.h"
#include "fast.h"
#include "simd_loops.h"

namespace calque {
namespace {

using torch::Tensor;

constexpr int64_t levels = 127;                          // int8 weights are in -127 … 127
constexpr int64_t multiplications_per_thread = 1 << 20;  // mutate: speed only; fewer are not worth a thread
constexpr int64_t panels_per_task = 8;                   // mutate: speed only
constexpr int64_t block_bytes =
    192 * 1024;                       // mutate: speed only; of input rows, which then stay in the L2 cache
constexpr int64_t row_multiple = 12;  // a multiple of every tile height

Tensor padded(const Tensor& rows, int64_t count) {
  auto sizes = rows.sizes().vec();
  sizes[0] = count - sizes[0];
  return sizes[0] == 0 ? rows : torch::cat({rows, torch::zeros(sizes, rows.options())});
}

// Converts [outputs, inputs] to [outputs / 16, inputs, 16]; the last panel is padded with zeros.
Tensor float_panels(const Tensor& weight, int64_t panels) {
  constexpr int64_t columns = simd::packed_columns;
  const int64_t inputs = weight.size(1), outputs = weight.size(0);
  const int64_t output_step = weight.stride(0), input_step = weight.stride(1);
  const Tensor packed = torch::empty({panels, inputs, columns}, torch::kFloat32);
  const float* from = weight.const_data_ptr<float>();
  float* to = packed.mutable_data_ptr<float>();
  parallel_rows(panels, std::max<int64_t>(1, (1 << 16) / (columns * inputs)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t panel = begin; panel < end; ++panel) {
                    const int64_t count = std::min(columns, outputs - panel * columns);
                    const float* first = from + panel * columns * output_step;
                    float* row = to + panel * inputs * columns;
                    if (count < columns) std::fill_n(row, inputs * columns, 0.0F);
                    for (int64_t k = 0; k < inputs; ++k, row += columns, first += input_step) {
                      if (output_step == 1 && count == columns) {
                        std::copy_n(first, columns, row);
                      } else {
                        for (int64_t c = 0; c < count; ++c) row[c] = first[c * output_step];
                      }
                    }
                  }
                });
  return packed;
}

}  // namespace

PackedMatrix::PackedMatrix(const Tensor& weight, const Tensor& bias, WeightPrecision precision)
    : precision_(precision), inputs_(weight.size(1)), outputs_(weight.size(0)) {
  const torch::NoGradGuard no_gradients;
  const int64_t panels = (outputs_ + simd::packed_columns - 1) / simd::packed_columns;
  bias_ = padded(bias.defined() ? bias.to(torch::kFloat32) : torch::zeros({outputs_}),
                 panels * simd::packed_columns);
  if (precision != WeightPrecision::int8) {
    panels_ = float_panels(weight.to(torch::kFloat32), panels);
    if (precision == WeightPrecision::bfloat16) panels_ = panels_.to(torch::kBFloat16);
    return;
  }
  const Tensor wide = padded(weight.to(torch::kFloat32), panels * simd::packed_columns);
  scales_ = wide.abs().amax(1).clamp_min(std::numeric_limits<float>::min()) / levels;  // [outputs]
  const Tensor quantised = (wide / scales_.unsqueeze(1)).round_().to(torch::kInt8);
  const int64_t input_pairs = (inputs_ + 1) / 2;
  panels_ = padded(quantised.t(), 2 * input_pairs)
                .t()
                .reshape({panels, simd::packed_columns, input_pairs, 2})
                .transpose(1, 2)
                .contiguous();
}

Tensor PackedMatrix::unpacked() const {
  if (precision_ != WeightPrecision::int8) {
    return panels_.to(torch::kFloat32).transpose(1, 2).reshape({-1, inputs_}).slice(0, 0, outputs_);
  }
  const int64_t panels = panels_.size(0), input_pairs = panels_.size(1);
  const Tensor quantised = panels_.transpose(1, 2).reshape({panels * simd::packed_columns, 2 * input_pairs});
  return (quantised.slice(0, 0, outputs_).slice(1, 0, inputs_) * scales_.slice(0, 0, outputs_).unsqueeze(1));
}

Tensor PackedMatrix::rows(const Tensor& indices) const {
  TORCH_CHECK(precision_ == WeightPrecision::float32,
              "rows() needs float32 weights: other precisions are rounded");
  const int64_t count = indices.size(0);
  const Tensor result = torch::empty({count, inputs_}, torch::kFloat32);
  const int64_t* index = indices.const_data_ptr<int64_t>();
  const float* panels = panels_.const_data_ptr<float>();
  float* to = result.mutable_data_ptr<float>();
  for (int64_t i = 0; i < count; ++i) {
    TORCH_CHECK(index[i] >= 0 && index[i] < outputs_, "row index ", index[i],
                " is out of range: the matrix has ", outputs_, " rows");
    const float* from = panels + index[i] / simd::packed_columns * inputs_ * simd::packed_columns +
                        index[i] % simd::packed_columns;
    for (int64_t k = 0; k < inputs_; ++k) to[i * inputs_ + k] = from[k * simd::packed_columns];
  }
  return result;
}

int64_t PackedMatrix::bytes() const {
  return static_cast<int64_t>(panels_.nbytes()) +
         (scales_.defined() ? static_cast<int64_t>(scales_.nbytes()) : 0);
}

Tensor PackedMatrix::multiply(const Tensor& given) const {
  RECORD_USER_SCOPE("products");
  const Tensor x = given.contiguous();
  const Tensor y = empty_activation({x.size(0), outputs_});
  multiply(x.const_data_ptr<float>(), x.size(0), y.mutable_data_ptr<float>());
  return y;
}

void PackedMatrix::multiply(const float* x, int64_t rows, float* y) const {
  simd::PackedWork work{};
  work.panels = panels_.const_data_ptr();
  work.bias = bias_.const_data_ptr<float>();
  work.inputs = inputs_;
  work.outputs = outputs_;
  work.x = x;
  work.rows = rows;
  work.y = y;
  auto loop = precision_ == WeightPrecision::bfloat16 ? simd::packed_bfloat16 : simd::packed_float32;
  const int64_t quantised_stride = (inputs_ + 1) / 2 * 2;
  int64_t row_bytes = inputs_ * static_cast<int64_t>(sizeof(float));
  if (precision_ == WeightPrecision::int8) {
    // The sum of `inputs` products must fit into 32 bits.
    const int64_t largest = std::numeric_limits<int32_t>::max() / (levels * inputs_);
    const auto limit = static_cast<float>(std::min<int64_t>(largest, std::numeric_limits<int16_t>::max()));
    thread_local std::vector<int16_t> quantised;
    thread_local std::vector<float> scales;
    quantised.resize(std::max(quantised.size(), static_cast<size_t>(rows * quantised_stride)));
    scales.resize(std::max(scales.size(), static_cast<size_t>(rows)));
    int16_t* rounded = quantised.data();
    float* row_scales = scales.data();
    parallel_rows(rows, std::max<int64_t>(1, multiplications_per_thread / 8 / inputs_),
                  [&](int64_t begin, int64_t end) {
                    simd::quantise_rows(x + begin * inputs_, inputs_, end - begin, limit,
                                        rounded + begin * quantised_stride, row_scales + begin);
                  });
    work.quantised = rounded;
    work.row_scales = row_scales;
    work.scales = scales_.const_data_ptr<float>();
    row_bytes = quantised_stride * static_cast<int64_t>(sizeof(int16_t));
    loop = simd::packed_int8;
  }
  // A unit of work is a block of rows, which stays in the L2 cache, times a group of panels.
  const int64_t panels = panels_.size(0), groups = (panels + panels_per_task - 1) / panels_per_task;
  const int64_t block = std::max<int64_t>(1, block_bytes / row_bytes / row_multiple) * row_multiple;
  const int64_t units = (rows + block - 1) / block * groups;
  const int64_t useful_threads =
      rows * inputs_ * outputs_ / multiplications_per_thread;                     // mutate: speed only
  const int64_t threads = std::clamp<int64_t>(useful_threads, 1, num_threads());  // mutate: speed only
  parallel_units(units, threads, [&](int64_t unit) {
    const int64_t row = unit / groups * block, panel = unit % groups * panels_per_task;
    simd::PackedWork part = work;
    part.rows = std::min(block, rows - row);
    part.x += row * inputs_;
    part.y += row * outputs_;
    if (precision_ == WeightPrecision::int8) {
      part.quantised += row * quantised_stride;
      part.row_scales += row;
    }
    loop(part, panel, std::min(panels, panel + panels_per_task));
  });
}

}  // namespace calque

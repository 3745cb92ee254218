#include "calque/kernels/packed_matrix.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <torch/types.h>

#include <algorithm>
#include <limits>

#include "calque/kernels/simd_loops.h"
#include "calque/kernels/threads.h"

namespace calque {
namespace {

using torch::Tensor;

constexpr int64_t steps = 127;                 // of an int8 weight, to either side of zero
constexpr int64_t work_of_a_thread = 1 << 20;  // multiplications that are worth waking one for
constexpr int64_t panels_at_once = 8;
constexpr int64_t block_bytes = 192 * 1024;  // of rows
constexpr int64_t row_multiple = 12;         // as many as a tile has, or twice that

Tensor padded(const Tensor& rows, int64_t count) {
  auto sizes = rows.sizes().vec();
  sizes[0] = count - sizes[0];
  return sizes[0] == 0 ? rows : torch::cat({rows, torch::zeros(sizes, rows.options())});
}

// [outputs, inputs] to [outputs / 16, inputs, 16], the last panel filled up with zeros. A weight that is
// learnt is laid out in every step, so that it must not take long.
Tensor float_panels(const Tensor& weight, int64_t panels) {
  constexpr int64_t columns = simd::packed_columns;
  const int64_t inputs = weight.size(1), outputs = weight.size(0);
  const int64_t output_step = weight.stride(0), input_step = weight.stride(1);
  const Tensor packed = torch::empty({panels, inputs, columns}, torch::kFloat32);
  const float* from = weight.const_data_ptr<float>();
  float* to = packed.mutable_data_ptr<float>();
  at::parallel_for(0, panels, std::max<int64_t>(1, (1 << 16) / (columns * inputs)),
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

PackedMatrix::PackedMatrix(const Tensor& weight, const Tensor& bias, Packing packing)
    : packing_(packing), inputs_(weight.size(1)), outputs_(weight.size(0)) {
  const torch::NoGradGuard no_gradients;
  const int64_t panels = (outputs_ + simd::packed_columns - 1) / simd::packed_columns;
  bias_ = padded(bias.defined() ? bias.to(torch::kFloat32) : torch::zeros({outputs_}),
                 panels * simd::packed_columns);
  if (packing != Packing::int8) {
    panels_ = float_panels(weight.to(torch::kFloat32), panels);
    if (packing == Packing::bfloat16) panels_ = panels_.to(torch::kBFloat16);
    return;
  }
  const Tensor wide = padded(weight.to(torch::kFloat32), panels * simd::packed_columns);
  scales_ = wide.abs().amax(1).clamp_min(std::numeric_limits<float>::min()) / steps;  // [outputs]
  const Tensor whole = (wide / scales_.unsqueeze(1)).round_().to(torch::kInt8);
  const int64_t pairs = (inputs_ + 1) / 2;
  panels_ = padded(whole.t(), 2 * pairs)
                .t()
                .reshape({panels, simd::packed_columns, pairs, 2})
                .transpose(1, 2)
                .contiguous();
}

int64_t PackedMatrix::bytes() const {
  return static_cast<int64_t>(panels_.nbytes()) +
         (scales_.defined() ? static_cast<int64_t>(scales_.nbytes()) : 0);
}

Tensor PackedMatrix::multiply(const Tensor& x_given) const {
  RECORD_USER_SCOPE("products");
  const Tensor x = x_given.contiguous();
  const Tensor y = torch::empty({x.size(0), outputs_}, torch::kFloat32);
  multiply(x.const_data_ptr<float>(), x.size(0), y.mutable_data_ptr<float>());
  return y;
}

void PackedMatrix::multiply(const float* x, int64_t rows, float* y, bool add) const {
  simd::PackedWork work{};
  work.panels = panels_.const_data_ptr();
  work.bias = bias_.const_data_ptr<float>();
  work.inputs = inputs_;
  work.outputs = outputs_;
  work.x = x;
  work.rows = rows;
  work.y = y;
  work.add = add;
  auto loop = packing_ == Packing::bfloat16 ? simd::packed_bfloat16 : simd::packed_float32;
  const int64_t whole_stride = (inputs_ + 1) / 2 * 2;
  int64_t row_bytes = inputs_ * static_cast<int64_t>(sizeof(float));
  if (packing_ == Packing::int8) {
    // Sums of `inputs` products must stay inside 32 bits.
    const int64_t most = std::numeric_limits<int32_t>::max() / (steps * inputs_);
    const auto limit = static_cast<float>(std::min<int64_t>(most, std::numeric_limits<int16_t>::max()));
    thread_local std::vector<int16_t> whole;
    thread_local std::vector<float> scales;
    whole.resize(std::max(whole.size(), static_cast<size_t>(rows * whole_stride)));
    scales.resize(std::max(scales.size(), static_cast<size_t>(rows)));
    int16_t* rounded = whole.data();
    float* row_scales = scales.data();
    at::parallel_for(0, rows, std::max<int64_t>(1, work_of_a_thread / 8 / inputs_),
                     [&](int64_t begin, int64_t end) {
                       simd::round_rows(x + begin * inputs_, inputs_, end - begin, limit,
                                        rounded + begin * whole_stride, row_scales + begin);
                     });
    work.whole = rounded;
    work.row_scales = row_scales;
    work.scales = scales_.const_data_ptr<float>();
    row_bytes = whole_stride * static_cast<int64_t>(sizeof(int16_t));
    loop = simd::packed_int8;
  }
  // A unit of work is a block of rows, which stays in the second cache, times a group of panels.
  const int64_t panels = panels_.size(0), groups = (panels + panels_at_once - 1) / panels_at_once;
  const int64_t block = std::max<int64_t>(1, block_bytes / row_bytes / row_multiple) * row_multiple;
  const int64_t units = (rows + block - 1) / block * groups;
  const int64_t worthwhile = rows * inputs_ * outputs_ / work_of_a_thread;
  deal_out(units, std::clamp<int64_t>(worthwhile, 1, at::get_num_threads()), [&](int64_t unit) {
    const int64_t row = unit / groups * block, panel = unit % groups * panels_at_once;
    simd::PackedWork part = work;
    part.rows = std::min(block, rows - row);
    part.x += row * inputs_;
    part.y += row * outputs_;
    if (packing_ == Packing::int8) {
      part.whole += row * whole_stride;
      part.row_scales += row;
    }
    loop(part, panel, std::min(panels, panel + panels_at_once));
  });
}

}  // namespace calque

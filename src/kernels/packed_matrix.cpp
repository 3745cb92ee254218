#include "calque/kernels/packed_matrix.h"

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <limits>

#include "calque/kernels/simd_loops.h"

namespace calque {
namespace {

using torch::Tensor;

constexpr int64_t steps = 127;                 // of an int8 weight, to either side of zero
constexpr int64_t work_of_a_thread = 1 << 20;  // multiplications that are worth waking one for
Tensor padded(const Tensor& rows, int64_t count) {
  auto sizes = rows.sizes().vec();
  sizes[0] = count - sizes[0];
  return sizes[0] == 0 ? rows : torch::cat({rows, torch::zeros(sizes, rows.options())});
}

}  // namespace

PackedMatrix::PackedMatrix(const Tensor& weight, const Tensor& bias, Packing packing)
    : packing_(packing), inputs_(weight.size(1)), outputs_(weight.size(0)) {
  const torch::NoGradGuard no_gradients;
  const int64_t panels = (outputs_ + simd::packed_columns - 1) / simd::packed_columns;
  const Tensor wide = padded(weight.to(torch::kFloat32), panels * simd::packed_columns);
  bias_ = padded(bias.defined() ? bias.to(torch::kFloat32) : torch::zeros({outputs_}),
                 panels * simd::packed_columns);
  if (packing == Packing::int8) {
    scales_ = wide.abs().amax(1).clamp_min(std::numeric_limits<float>::min()) / steps;  // [outputs]
    const Tensor whole = (wide / scales_.unsqueeze(1)).round_().to(torch::kInt8);
    const int64_t pairs = (inputs_ + 1) / 2;
    panels_ = padded(whole.t(), 2 * pairs)
                  .t()
                  .reshape({panels, simd::packed_columns, pairs, 2})
                  .transpose(1, 2)
                  .contiguous();
    return;
  }
  panels_ = wide.view({panels, simd::packed_columns, inputs_})
                .transpose(1, 2)
                .to(packing == Packing::bfloat16 ? torch::kBFloat16 : torch::kFloat32)
                .contiguous();
}

int64_t PackedMatrix::bytes() const {
  return static_cast<int64_t>(panels_.nbytes()) +
         (scales_.defined() ? static_cast<int64_t>(scales_.nbytes()) : 0);
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
  if (packing_ == Packing::int8) {
    // Sums of `inputs` products must stay inside 32 bits.
    const int64_t most = std::numeric_limits<int32_t>::max() / (steps * inputs_);
    const auto limit = static_cast<float>(std::min<int64_t>(most, std::numeric_limits<int16_t>::max()));
    const int64_t stride = (inputs_ + 1) / 2 * 2;
    thread_local std::vector<int16_t> whole;
    thread_local std::vector<float> scales;
    whole.resize(std::max(whole.size(), static_cast<size_t>(rows * stride)));
    scales.resize(std::max(scales.size(), static_cast<size_t>(rows)));
    simd::round_rows(x, inputs_, rows, limit, whole.data(), scales.data());
    work.whole = whole.data();
    work.row_scales = scales.data();
    work.scales = scales_.const_data_ptr<float>();
    loop = simd::packed_int8;
  }
  const int64_t panel_work = simd::packed_columns * inputs_ * rows;
  at::parallel_for(0, panels_.size(0), std::max<int64_t>(1, work_of_a_thread / panel_work),
                   [&](int64_t begin, int64_t end) { loop(work, begin, end); });
}

}  // namespace calque

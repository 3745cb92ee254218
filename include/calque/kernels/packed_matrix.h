// PackedMatrix: a weight laid out in panels of 16 outputs, for fast products without gradients.
// The result of a row is bit-identical for any batch size and any number of threads.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "calque/kernels/weight_precision.h"

namespace calque {

class PackedMatrix {
 public:
  PackedMatrix() = default;
  // weight: [outputs, inputs]; bias: [outputs] or undefined.
  PackedMatrix(const torch::Tensor& weight, const torch::Tensor& bias, WeightPrecision precision);

  // y = x · weightᵀ + bias. x: [rows, inputs]; y: [rows, outputs].
  torch::Tensor multiply(const torch::Tensor& x) const;
  void multiply(const float* x, int64_t rows, float* y) const;

  torch::Tensor unpacked() const;  // [outputs, inputs] float32, with the rounding of the precision
  // The given rows of the weight: [indices, inputs]. For float32 only; other precisions are rounded.
  torch::Tensor rows(const torch::Tensor& indices) const;

  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }
  int64_t bytes() const;

 private:
  WeightPrecision precision_ = WeightPrecision::float32;
  int64_t inputs_ = 0, outputs_ = 0;
  torch::Tensor panels_;  // [outputs / 16, inputs, 16], or for int8 [outputs / 16, inputs / 2, 16, 2]
  torch::Tensor scales_;  // [outputs] for int8, else undefined
  torch::Tensor bias_;    // [outputs], zeros if there is none
};

}  // namespace calque

// PackedMatrix: a weight laid out for products with many rows, or with few rows many times. A row's result is
// the same to the bit whatever rows stand beside it, and however many threads work on them.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "calque/kernels/packing.h"

namespace calque {

class PackedMatrix {
 public:
  PackedMatrix() = default;
  // weight: [outputs, inputs]; bias: [outputs] or undefined.
  PackedMatrix(const torch::Tensor& weight, const torch::Tensor& bias, Packing packing);

  // y = x · weightᵀ + bias, or with `add` y += that. x: [rows, inputs]; y: [rows, outputs].
  void multiply(const float* x, int64_t rows, float* y, bool add = false) const;
  torch::Tensor multiply(const torch::Tensor& x) const;

  int64_t outputs() const { return outputs_; }
  int64_t bytes() const;

 private:
  Packing packing_ = Packing::float32;
  int64_t inputs_ = 0, outputs_ = 0;
  torch::Tensor panels_;  // [outputs / 16, inputs, 16], or for int8 [outputs / 16, inputs / 2, 16, 2]
  torch::Tensor scales_;  // [outputs] of int8, else undefined
  torch::Tensor bias_;    // [outputs], zeros where there is none
};

}  // namespace calque

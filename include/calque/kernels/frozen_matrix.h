// FrozenMatrix: a weight that is not trained (below adapters), stored with reduced precision. bfloat16 takes
// half the memory; int8 products take little more than half the time.
#pragma once

#include <torch/types.h>

#include <memory>

#include "calque/kernels/packed_matrix.h"

namespace calque {

class FrozenMatrix {
 public:
  // weight: [outputs, inputs] float32; a copy is kept in `precision` (bfloat16 or int8).
  FrozenMatrix(const torch::Tensor& weight, WeightPrecision precision);

  // x: [rows, inputs] float32. Returns x · weightᵀ, [rows, outputs] float32, with a gradient for x only.
  torch::Tensor multiply(const torch::Tensor& x) const;
  torch::Tensor weight() const;  // float32, with the rounding of `precision`

 private:
  // One matrix for each pass; each is rounded separately.
  struct Packed : torch::CustomClassHolder {
    explicit Packed(const torch::Tensor& weight)
        : forward(weight, {}, WeightPrecision::int8), backward(weight.t(), {}, WeightPrecision::int8) {}
    PackedMatrix forward, backward;
  };
  c10::intrusive_ptr<Packed> packed_;
  torch::Tensor stored_;  // [outputs, inputs] bfloat16; undefined for int8
};

}  // namespace calque

// Matrix products with a weight that is not learnt, as adapters stand beside. It need not be kept as exactly
// as one that is learnt: in bfloat16 it takes half the memory, in int8 its products take little over half the
// time.
#pragma once

#include <torch/types.h>

#include "calque/kernels/packed_matrix.h"

namespace calque {

// A weight laid out for both passes: forward as it is, backward transposed, each rounded for itself.
struct PackedFrozen : torch::CustomClassHolder {
  PackedFrozen(const torch::Tensor& weight, Packing packing)
      : forward(weight, {}, packing), backward(weight.t(), {}, packing) {}
  PackedMatrix forward, backward;
};

// x: [rows, inputs] float32; weight: [outputs, inputs] of any type, without gradient, widened for the product
// and never kept wide; bias: [outputs] or undefined; `packed` the same weight laid out, or null. Gives [rows,
// outputs] float32.
torch::Tensor frozen_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                            const c10::intrusive_ptr<PackedFrozen>& packed = {});

}  // namespace calque

// Linear: a matrix product, with or without a bias; its weight is [outputs, inputs], as in LibTorch's own. A
// low-rank adapter (Hu et al., 2021) may stand beside a frozen weight, which may be kept in bfloat16 or laid
// out in int8.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "calque/kernels/frozen_linear.h"

namespace calque {

class Linear : public torch::nn::Module {
 public:
  Linear(int64_t inputs, int64_t outputs, bool bias);

  torch::Tensor forward(const torch::Tensor& x) const;  // [rows, inputs] → [rows, outputs]
  // Only outputs `begin` … `end`: a part of a matrix that holds several.
  torch::Tensor forward_part(const torch::Tensor& x, int64_t begin, int64_t end) const;

  // The weight is learnt no more, and kept or laid out as the packing says.
  void freeze(Packing packing);
  // From here on weight + scale · up · down is what multiplies; up is zero at first, so that nothing changes.
  void add_adapter(int64_t rank, double scale, double dropout, uint64_t seed);
  torch::Tensor merged_weight() const;  // float32, the adapter added where there is one

  torch::Tensor weight;                    // [outputs, inputs]
  torch::Tensor bias;                      // [outputs], or undefined
  torch::Tensor adapter_down, adapter_up;  // [rank, inputs] and [outputs, rank], or undefined
  bool half_products = false;              // of rows and weight, as trained_linear's `half`

 private:
  c10::intrusive_ptr<PackedFrozen> packed_;  // the weight laid out, where it is frozen in int8
  double adapter_scale_ = 0, adapter_dropout_ = 0;
};

}  // namespace calque

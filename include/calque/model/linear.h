// Linear: y = x · weightᵀ + bias. The weight is a parameter; it may be frozen in a lower precision below a
// low-rank adapter (Hu et al., 2021), or packed, the adapter merged, for fast products without gradients.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <optional>

#include "calque/kernels/frozen_matrix.h"

namespace calque {

// LowRankAdapter: adds scale · up · down to a frozen weight.
struct LowRankAdapter {
  torch::Tensor down, up;  // [rank, inputs] and [outputs, rank]
  double scale = 0, dropout = 0;

  // y + scale · (x · downᵀ) · upᵀ for outputs `begin` … `end` - 1. y is overwritten.
  torch::Tensor add_to(torch::Tensor y, const torch::Tensor& x, int64_t begin, int64_t end,
                       bool training) const;
};

class Linear : public torch::nn::Module {
 public:
  Linear(int64_t inputs, int64_t outputs, bool bias);

  torch::Tensor forward(const torch::Tensor& x) const;  // [rows, inputs] → [rows, outputs]
  // Outputs `begin` … `end` - 1 alone: one part of a fused matrix.
  torch::Tensor forward_part(const torch::Tensor& x, int64_t begin, int64_t end) const;

  // Stops training the weight and stores it in `precision`.
  void freeze(WeightPrecision precision);
  // Adds a trained adapter; `up` starts at zero, so that the output is unchanged at first.
  void add_adapter(int64_t rank, double scale, double dropout, uint64_t seed);
  // Replaces the weight by its packed form, an adapter merged in. No gradients from here on.
  void pack(WeightPrecision precision);
  // Uses the packed weight of `other`, of the same shape, instead of its own.
  void share_packed(const Linear& other);
  // Packs the adapter by itself, so that the packed weight below it stays shared.
  void pack_adapter();

  torch::Tensor merged_weight() const;  // float32, an adapter merged in
  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  bool is_trained() const { return weight.defined() && weight.requires_grad(); }
  // Weights that are no parameters any more, since they are stored in another form.
  int64_t stored_weights() const { return weight.defined() ? 0 : inputs_ * outputs_; }

  torch::Tensor weight;  // [outputs, inputs]; undefined once it is stored in another form
  torch::Tensor bias;    // [outputs], or undefined
  std::optional<LowRankAdapter> adapter;
  torch::Dtype products = torch::kFloat32;  // the type to which the operands of the product are rounded

 private:
  void release_weight();
  void release_adapter();
  torch::Tensor multiply_packed(const torch::Tensor& x) const;

  int64_t inputs_, outputs_;
  std::shared_ptr<const FrozenMatrix> frozen_;
  std::shared_ptr<const PackedMatrix> packed_;
  std::optional<PackedMatrix> packed_down_, packed_up_;  // of an adapter on a shared weight
};

}  // namespace calque

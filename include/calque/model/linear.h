// Linear: a matrix product, with or without a bias; its weight is [outputs, inputs], as in LibTorch's own.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

namespace calque {

class Linear : public torch::nn::Module {
 public:
  Linear(int64_t inputs, int64_t outputs, bool bias);

  torch::Tensor forward(const torch::Tensor& x) const;  // [rows, inputs] → [rows, outputs]
  // Only outputs `begin` … `end`: a part of a matrix that holds several.
  torch::Tensor forward_part(const torch::Tensor& x, int64_t begin, int64_t end) const;

  torch::Tensor weight;  // [outputs, inputs]
  torch::Tensor bias;    // [outputs], or undefined
};

}  // namespace calque

// Norm: the normalisation in front of each part of a block, and at the end.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "calque/model/model_config.h"

namespace calque {

class Norm : public torch::nn::Module {
 public:
  explicit Norm(const ModelConfig& config);
  torch::Tensor forward(const torch::Tensor& x) const;  // [rows, width] → [rows, width]

  torch::Tensor weight;  // [width]
  torch::Tensor bias;    // [width]; undefined for rms

 private:
  double epsilon_;
};

}  // namespace calque

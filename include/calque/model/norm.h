// Norm: the normalisation in front of each part of a block, and at the end; in some models also behind each
// part, and of each head.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "calque/model/model_config.h"

namespace calque {

class Norm : public torch::nn::Module {
 public:
  Norm(const ModelConfig& config, int64_t width);
  torch::Tensor forward(const torch::Tensor& x) const;  // [rows, width] → [rows, width]

  torch::Tensor weight;  // [width]
  torch::Tensor bias;    // [width]; undefined for rms

 private:
  NormKind kind_;
  double epsilon_;
};

}  // namespace calque

// Norm: RMSNorm or LayerNorm with its weights.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "calque/model/model_config.h"

namespace calque {

class Norm : public torch::nn::Module {
 public:
  Norm(const ModelConfig& config, int64_t size);
  torch::Tensor forward(const torch::Tensor& x) const;  // [rows, size] → [rows, size]

  torch::Tensor weight;  // [size]
  torch::Tensor bias;    // [size]; undefined for RMSNorm

 private:
  NormKind kind_;
  double epsilon_;
};

}  // namespace calque

// Embedding: a token's row of numbers, with its position's added where positions are learned or sinusoidal.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "calque/model/model_config.h"
#include "calque/model/pass.h"

namespace calque {

class Embedding : public torch::nn::Module {
 public:
  explicit Embedding(const ModelConfig& config);
  torch::Tensor forward(const torch::Tensor& tokens, const Pass& pass) const;  // [rows] int64 → [rows, width]

  torch::Tensor weight;  // [vocabulary, width]
  torch::Tensor
      positions;  // [max_positions, width]: a parameter if learned, a table if sinusoidal, else undefined

 private:
  double scale_, dropout_;
};

}  // namespace calque

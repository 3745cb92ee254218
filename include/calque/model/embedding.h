// Embedding: token embeddings, plus position embeddings where positions are learned or sinusoidal.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>

#include "calque/kernels/packed_matrix.h"
#include "calque/model/forward_context.h"
#include "calque/model/model_config.h"

namespace calque {

class Embedding : public torch::nn::Module {
 public:
  explicit Embedding(const ModelConfig& config);
  torch::Tensor forward(const torch::Tensor& tokens,
                        const ForwardContext& context) const;  // [rows] int64 → [rows, hidden_size]

  // Looks tokens up in the packed output matrix from here on and frees the table: one copy serves both.
  void share(std::shared_ptr<const PackedMatrix> table);

  torch::Tensor weight;     // [vocabulary, hidden_size]; undefined once shared
  torch::Tensor positions;  // [context_length, hidden_size]: a parameter if learned, a buffer if sinusoidal

 private:
  double scale_, dropout_;
  std::shared_ptr<const PackedMatrix> shared_;
};

}  // namespace calque

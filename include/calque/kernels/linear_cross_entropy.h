// Cross-entropy with label smoothing (Szegedy et al., 2016), computed from hidden states and the output
// matrix. One function covers both steps, so that the fast version never holds all logits at once.
#pragma once

#include <torch/types.h>

namespace calque {

struct CrossEntropyLoss {
  torch::Tensor smoothed;  // training objective: sum over rows, with label smoothing
  torch::Tensor plain;     // for reporting: sum over rows of -log p(label); carries no gradient
};

// hidden: [rows, width]; weight: [vocabulary, width]; labels: [rows] int64. smoothing: in [0, 1), the share
// of the target distribution that is spread evenly over the vocabulary. products: the type to which the
// operands of the matrix products are rounded.
CrossEntropyLoss linear_cross_entropy(const torch::Tensor& hidden, const torch::Tensor& weight,
                                      const torch::Tensor& labels, double smoothing,
                                      torch::Dtype products = torch::kFloat32);

namespace reference {
CrossEntropyLoss linear_cross_entropy(const torch::Tensor& hidden, const torch::Tensor& weight,
                                      const torch::Tensor& labels, double smoothing,
                                      torch::Dtype products = torch::kFloat32);
}  // namespace reference

}  // namespace calque

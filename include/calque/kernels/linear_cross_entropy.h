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
// of the target distribution that is spread evenly over the vocabulary. bfloat16: round the operands of the
// matrix products to bfloat16.
CrossEntropyLoss linear_cross_entropy(const torch::Tensor& hidden, const torch::Tensor& weight,
                                      const torch::Tensor& labels, double smoothing, bool bfloat16 = false);

namespace reference {
CrossEntropyLoss linear_cross_entropy(const torch::Tensor& hidden, const torch::Tensor& weight,
                                      const torch::Tensor& labels, double smoothing, bool bfloat16 = false);
}  // namespace reference

}  // namespace calque

// The loss of predicting labels from hidden rows through the output matrix: cross-entropy with label
// smoothing (Szegedy et al., 2016). One function from hidden to loss, so that the fast version never keeps
// all logits.
#pragma once

#include <torch/types.h>

namespace calque {

struct OutputLoss {
  torch::Tensor smoothed;  // what is minimised: sum over rows, label smoothing included
  torch::Tensor plain;     // sum over rows of -log p(label), for people; carries no gradient
};

// hidden: [rows, width]; weight: [vocabulary, width]; labels: [rows] int64; smoothing: in [0, 1), the share
// of the target distribution that is spread evenly over the vocabulary; half: as trained_linear's.
OutputLoss output_loss(const torch::Tensor& hidden, const torch::Tensor& weight, const torch::Tensor& labels,
                       double smoothing, bool half = false);

namespace reference {
OutputLoss output_loss(const torch::Tensor& hidden, const torch::Tensor& weight, const torch::Tensor& labels,
                       double smoothing, bool half = false);
}  // namespace reference

}  // namespace calque

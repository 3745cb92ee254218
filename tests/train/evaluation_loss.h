// The mean loss per label of some batches, as the evaluation model of a Trainer has it.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "calque/model/batch_layout.h"
#include "calque/train/trainer.h"

namespace calque {

inline double evaluation_loss(Trainer& trainer, const std::vector<Batch>& batches) {
  double loss = 0, labels = 0;
  trainer.with_evaluation_model([&](const Decoder& decoder) {
    for (const Batch& batch : batches) {
      loss += decoder
                  .loss(index_tensor(batch.tokens, torch::kCPU),
                        batch_layout(batch, decoder.config(), torch::kCPU),
                        index_tensor(batch.labels, torch::kCPU), 0)
                  .plain.item<double>();
      labels += static_cast<double>(batch.labels.size());
    }
  });
  return loss / labels;
}

}  // namespace calque

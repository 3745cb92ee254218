// The layout of a batch as the model needs it.
#pragma once

#include <torch/types.h>

#include "calque/data/batch.h"
#include "calque/kernels/layout.h"
#include "calque/model/model_config.h"

namespace calque {

// The queries are the rows that carry loss. With prefix attention the source attends in both directions.
Layout batch_layout(const Batch& batch, const ModelConfig& config, const torch::Device& device = torch::kCPU);

}  // namespace calque

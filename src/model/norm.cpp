#include "calque/model/norm.h"

#include <torch/types.h>

#include "calque/kernels/norm.h"

namespace calque {

Norm::Norm(const ModelConfig& config) : epsilon_(config.norm_epsilon) {
  weight = register_parameter("weight", torch::ones({config.width}));
  if (config.norm == NormKind::layer) bias = register_parameter("bias", torch::zeros({config.width}));
}

torch::Tensor Norm::forward(const torch::Tensor& x) const {
  return bias.defined() ? layer_norm(x, weight, bias, epsilon_) : rms_norm(x, weight, epsilon_);
}

}  // namespace calque

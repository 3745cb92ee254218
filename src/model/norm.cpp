#include "calque/model/norm.h"

#include <torch/types.h>

#include "calque/kernels/norm.h"

namespace calque {

Norm::Norm(const ModelConfig& config, int64_t size) : kind_(config.norm), epsilon_(config.norm_epsilon) {
  weight = register_parameter("weight", torch::full({size}, kind_ == NormKind::rms_plus_one ? 0.0 : 1.0));
  if (kind_ == NormKind::layer) bias = register_parameter("bias", torch::zeros({size}));
}

torch::Tensor Norm::forward(const torch::Tensor& x) const {
  switch (kind_) {
    case NormKind::rms:
      return rms_norm(x, weight, epsilon_);
    case NormKind::rms_plus_one:
      return rms_norm(x, weight + 1, epsilon_);
    case NormKind::layer:
      return layer_norm(x, weight, bias, epsilon_);
  }
  return x;
}

}  // namespace calque

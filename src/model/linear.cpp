#include "calque/model/linear.h"

#include <torch/types.h>

namespace calque {

Linear::Linear(int64_t inputs, int64_t outputs, bool with_bias) {
  weight = register_parameter("weight", torch::empty({outputs, inputs}));
  if (with_bias) bias = register_parameter("bias", torch::zeros({outputs}));
}

torch::Tensor Linear::forward(const torch::Tensor& x) const { return torch::linear(x, weight, bias); }

torch::Tensor Linear::forward_part(const torch::Tensor& x, int64_t begin, int64_t end) const {
  return torch::linear(x, weight.slice(0, begin, end), bias.defined() ? bias.slice(0, begin, end) : bias);
}

}  // namespace calque

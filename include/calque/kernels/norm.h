// Normalisation of each row: by its root mean square (Zhang and Sennrich, 2019), or by mean and deviation.
#pragma once

#include <torch/types.h>

namespace calque {

// x: [rows, width]; weight: [width]. x / √(mean(x²) + epsilon) · weight
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon);

// x: [rows, width]; weight, bias: [width]. LibTorch's own is fast already.
torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                         double epsilon);

namespace reference {
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon);
}  // namespace reference

}  // namespace calque

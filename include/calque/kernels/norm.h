// RMSNorm (Zhang and Sennrich, 2019) and LayerNorm (Ba et al., 2016) of each row.
#pragma once

#include <torch/types.h>

namespace calque {

// x: [rows, width]; weight: [width]. Returns x / √(mean(x²) + epsilon) · weight.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon);

// x: [rows, width]; weight, bias: [width]. Training uses LibTorch's own, which is fast enough.
torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                         double epsilon);

namespace reference {
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon);
}  // namespace reference

}  // namespace calque

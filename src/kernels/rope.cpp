#include "calque/kernels/rope.h"

#include <torch/types.h>

namespace calque {

RopeTable make_rope_table(int64_t positions, int64_t head_size, double theta, const torch::Device& device) {
  const auto options = torch::dtype(torch::kFloat32);
  const auto exponents = torch::arange(0, head_size, 2, options) / static_cast<double>(head_size);
  const auto frequencies = 1.0 / torch::pow(theta, exponents);  // [head_size / 2]
  const auto angles =
      torch::outer(torch::arange(positions, options), frequencies);  // [positions, head_size / 2]
  return {angles.cos().to(device), angles.sin().to(device)};
}

torch::Tensor rotate(const torch::Tensor& x, const torch::Tensor& positions, const RopeTable& table) {
  const auto cosines =
      table.cosines.index_select(0, positions).unsqueeze(1).to(x.scalar_type());  // [rows, 1, half]
  const auto sines =
      table.sines.index_select(0, positions).unsqueeze(1).to(x.scalar_type());  // [rows, 1, half]
  const auto halves = x.chunk(2, -1);
  return torch::cat({halves[0] * cosines - halves[1] * sines, halves[1] * cosines + halves[0] * sines}, -1);
}

}  // namespace calque

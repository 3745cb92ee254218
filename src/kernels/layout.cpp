#include "calque/kernels/layout.h"

#include <torch/types.h>

namespace calque {

torch::Tensor index_tensor(const std::vector<int64_t>& values, const torch::Device& device) {
  return torch::tensor(values, torch::dtype(torch::kInt64)).to(device);
}

Layout make_layout(const Batch& batch, bool prefix, const torch::Device& device) {
  Layout layout;
  layout.offsets = batch.offsets;
  layout.query_offsets = {0};
  for (int64_t pair = 0; pair < batch.pairs(); ++pair) {
    layout.prefix_ends.push_back(prefix ? batch.target_starts[pair] : batch.offsets[pair]);
    // Loss begins at the row before the target, or at the first row where there is no source.
    const int64_t first = std::max(batch.target_starts[pair] - 1, batch.offsets[pair]);
    layout.query_offsets.push_back(layout.query_offsets.back() + batch.offsets[pair + 1] - first);
  }
  layout.positions = index_tensor(batch.positions, device);
  layout.query_rows = index_tensor(batch.loss_rows, device);
  return layout;
}

Layout ask_for_all(const Layout& layout) {
  Layout all = layout;
  all.query_offsets = layout.offsets;
  all.query_rows = torch::arange(layout.rows(), layout.positions.options());
  return all;
}

}  // namespace calque

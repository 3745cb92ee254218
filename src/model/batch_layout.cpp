#include "calque/model/batch_layout.h"

namespace calque {

Layout batch_layout(const Batch& batch, const ModelConfig& config, const torch::Device& device) {
  Layout layout;
  layout.offsets = batch.offsets;
  layout.query_offsets = {0};
  std::vector<int64_t> positions = batch.positions;
  for (size_t pair = 0; pair < batch.target_starts.size(); ++pair) {
    const int64_t begin = batch.offsets[pair], target = batch.target_starts[pair],
                  end = batch.offsets[pair + 1];
    layout.prefix_ends.push_back(config.is_prefix() ? target : begin);
    // Loss begins at the row before the target, or at the first row where there is no source.
    const int64_t first = std::max(target - 1, begin);
    layout.query_offsets.push_back(layout.query_offsets.back() + end - first);
    for (int64_t row = first; config.restarts_positions() && row < end; ++row)
      positions[static_cast<size_t>(row)] = row - first;
  }
  layout.positions = index_tensor(positions, device);
  layout.query_rows = index_tensor(batch.loss_rows, device);
  return layout;
}

}  // namespace calque

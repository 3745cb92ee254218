// Layouts of pairs with different lengths, for the tests of attention.
#pragma once

#include <utility>
#include <vector>

#include "calque/kernels/layout.h"

namespace calque {

// pairs: numbers of (source tokens, target tokens), laid out as in training: <s>, source, <sep>, target. The
// queries are <sep> and the target; without a source, every row.
inline Layout ragged_layout(const std::vector<std::pair<int64_t, int64_t>>& pairs, bool prefix) {
  Layout layout;
  layout.offsets = layout.query_offsets = {0};
  std::vector<int64_t> positions, query_rows;
  for (const auto& [source, target] : pairs) {
    const int64_t begin = layout.rows(), target_start = begin + 1 + source + (source > 0 ? 1 : 0);
    const int64_t end = target_start + target;
    layout.offsets.push_back(end);
    layout.prefix_ends.push_back(prefix ? target_start : begin);
    for (int64_t row = begin; row < end; ++row) positions.push_back(row - begin);
    for (int64_t row = target_start - 1; row < end; ++row) query_rows.push_back(row);
    layout.query_offsets.push_back(static_cast<int64_t>(query_rows.size()));
  }
  layout.positions = index_tensor(positions);
  layout.query_rows = index_tensor(query_rows);
  return layout;
}

}  // namespace calque

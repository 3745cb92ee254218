// Layout of a flat batch: where each pair begins, which part of it attends in both directions, and for which
// rows the output is needed (the queries). Attention is the only part of a model that depends on it.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace calque {

struct Layout {
  std::vector<int64_t> offsets;      // [pairs + 1] first row of each pair; the last is the number of rows
  std::vector<int64_t> prefix_ends;  // [pairs] row i attends to row j of its pair if j ≤ i or j < prefix_end
  // [pairs + 1] first query of each pair: the queries of pair p are its last
  // query_offsets[p + 1] - query_offsets[p] rows.
  std::vector<int64_t> query_offsets;
  torch::Tensor positions;   // [rows] int64
  torch::Tensor query_rows;  // [queries] int64: the row of each query

  int64_t pairs() const { return static_cast<int64_t>(prefix_ends.size()); }
  int64_t rows() const { return offsets.back(); }
  int64_t queries() const { return query_offsets.back(); }
  bool queries_all_rows() const { return queries() == rows(); }
};

// The same pairs with every row as a query, as all layers but the last need it.
Layout query_all_rows(const Layout& layout);

// The layout of pairs `begin` … `end` - 1 only.
Layout slice_pairs(const Layout& layout, int64_t begin, int64_t end);

// An int64 tensor that owns a copy of the values.
torch::Tensor index_tensor(const std::vector<int64_t>& values, const torch::Device& device = torch::kCPU);

}  // namespace calque

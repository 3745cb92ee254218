// Layout: where the pairs of a flat batch lie, how much of each sees itself in both directions, and which
// rows are asked for. Attention is the only part of a model that needs to know.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "calque/data/batch.h"

namespace calque {

struct Layout {
  std::vector<int64_t> offsets;      // [pairs + 1] where each pair begins; the last is the number of rows
  std::vector<int64_t> prefix_ends;  // [pairs] row i sees row j of its pair if j ≤ i or j < prefix_end
  // [pairs + 1] the rows that are asked for, counted on their own: the last query_offsets[p+1] -
  // query_offsets[p] rows of pair p.
  std::vector<int64_t> query_offsets;
  torch::Tensor positions;   // [rows] int64
  torch::Tensor query_rows;  // [queries] int64: which rows they are

  int64_t pairs() const { return static_cast<int64_t>(prefix_ends.size()); }
  int64_t rows() const { return offsets.back(); }
  int64_t queries() const { return query_offsets.back(); }
  bool asks_for_all() const { return queries() == rows(); }
};

// The layout of a batch whose loss rows are asked for. `prefix`: the source sees itself in both directions.
Layout make_layout(const Batch& batch, bool prefix, const torch::Device& device = torch::kCPU);

// The same pairs with every row asked for: what all layers but the last need.
Layout ask_for_all(const Layout& layout);

// The indices as a tensor that owns a copy.
torch::Tensor index_tensor(const std::vector<int64_t>& values, const torch::Device& device = torch::kCPU);

}  // namespace calque

// PaddedPairs: the pairs of a flat batch as a few rectangles, for attention on devices that have no kernel
// for ragged batches. A rectangle holds pairs of similar size, so that padding costs at most about as much
// again as the pairs themselves, and one long pair does not widen the others. Made once per pass for all
// layers.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "calque/kernels/layout.h"

namespace calque {

struct CacheIndex;

// Added to a score that does not count. Not −∞: a kernel that works block by block would compute ∞ − ∞ where
// a block is masked as a whole.
inline constexpr double masked_score = -1e30;

struct PaddedGroup {
  int64_t pairs = 0, queries = 0, rows = 0;  // the rectangle; rows is a multiple of 8, for fused kernels
  torch::Tensor query_index;  // [pairs · queries] int64, of the flat queries; padding repeats the last
  torch::Tensor row_index;    // [pairs · rows] int64, of the flat rows or of cache slots; likewise
  torch::Tensor query_rows;   // [pairs, 1, queries, 1] int64: the row of each query inside its pair
  torch::Tensor mask;         // [pairs, 1, queries, rows] float32, added to the scores
};

struct PaddedPairs {
  std::vector<PaddedGroup> groups;
  torch::Tensor output_index;  // [queries] int64: where each query is in the groups, one after another
  torch::Tensor slots;         // [rows] int64: where each row is cached; undefined without a cache
};

// index: null where no rows are cached.
PaddedPairs pad_pairs(const Layout& layout, const CacheIndex* index = nullptr);

// The same for a pass over activations like x; null where the fast kernels need no padding.
std::shared_ptr<const PaddedPairs> padding_for(const torch::Tensor& x, const Layout& layout,
                                               const CacheIndex* index);

}  // namespace calque

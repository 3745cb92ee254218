// Attention over a cache: the rows of this pass look at keys and values of rows that were computed in earlier
// passes, wherever in the cache these lie. Each sequence lists what it sees, so that several can share a
// source, and are reordered by their lists, not by moving the cache.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "calque/kernels/attention.h"

namespace calque {

struct CacheRows {
  std::vector<int32_t> slots;         // [rows of the pass] where in the cache each is kept
  std::vector<int32_t> seen;          // the slots that each pair sees, in order, its own new rows last
  std::vector<int64_t> seen_offsets;  // [pairs + 1]
  std::vector<int64_t> prefixes;      // [pairs] how many of a pair's slots all of its rows see, ahead or not
};

// q: [queries, heads · head_width]; kv: [rows, 2 · key_value_heads · head_width] as in attention(); cache:
// [capacity, the same], which keeps kv of this pass, keys turned. The layout says which rows belong to which
// pair and which are asked for. Gives [queries, heads · head_width]. No gradients.
torch::Tensor cached_attention(const torch::Tensor& q, const torch::Tensor& kv, const torch::Tensor& cache,
                               const Layout& layout, const CacheRows& rows, const AttentionShape& shape,
                               const RotaryTable* rotary);

namespace reference {
torch::Tensor cached_attention(const torch::Tensor& q, const torch::Tensor& kv, const torch::Tensor& cache,
                               const Layout& layout, const CacheRows& rows, const AttentionShape& shape,
                               const RotaryTable* rotary);
}  // namespace reference

}  // namespace calque

// Attention over a key-value cache: the rows of this pass attend to keys and values of earlier passes. Each
// pair lists the cache slots that it attends to, so that beams can share the source and can be reordered
// without moving the cache.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "calque/kernels/attention.h"

namespace calque {

// Which slots the pairs of one pass write and attend to. Holds views: the caller keeps the lists alive.
struct CacheIndex {
  std::span<const int32_t> slots;            // [rows of the pass] where each row is stored
  std::span<const int32_t> visible;          // slots that each pair attends to, in order; new rows last
  std::span<const int64_t> visible_offsets;  // [pairs + 1] into `visible`
  std::span<const int64_t> prefix_lengths;   // [pairs] leading slots that all rows of a pair attend to

  // Pairs `begin` … `end` - 1, whose rows begin at `first_row`.
  CacheIndex slice_pairs(int64_t begin, int64_t end, int64_t first_row, int64_t rows) const;
};

// q: [queries, heads · head_size]; kv: [rows, 2 · kv_heads · head_size] as in attention(); both may be
// columns of a wider tensor. cache: [capacity, the same as kv]; this pass's kv is stored in it, keys rotated.
// padded: as in attention(). Returns [queries, heads · head_size]. No gradients.
torch::Tensor cached_attention(const torch::Tensor& q, const torch::Tensor& kv, const torch::Tensor& cache,
                               const Layout& layout, const CacheIndex& index, const AttentionShape& shape,
                               const RopeTable* rope, const PaddedPairs* padded = nullptr);

// The same with q, k and v side by side in one tensor, [rows, q | k | v]; every row is a query.
torch::Tensor cached_attention(const torch::Tensor& qkv, const torch::Tensor& cache, const Layout& layout,
                               const CacheIndex& index, const AttentionShape& shape, const RopeTable* rope,
                               const PaddedPairs* padded = nullptr);

namespace portable {
torch::Tensor cached_attention(const torch::Tensor& q, const torch::Tensor& kv, const torch::Tensor& cache,
                               const Layout& layout, const AttentionShape& shape, const RopeTable* rope,
                               const PaddedPairs& padded);
}  // namespace portable

namespace reference {
torch::Tensor cached_attention(const torch::Tensor& q, const torch::Tensor& kv, const torch::Tensor& cache,
                               const Layout& layout, const CacheIndex& index, const AttentionShape& shape,
                               const RopeTable* rope);
}  // namespace reference

}  // namespace calque

// Flat attention: softmax(q·kᵀ·scale)·v inside each pair of a flat batch, prefix or causal, with grouped
// key-value heads and RoPE. Queries are the rows that the layout names; keys and values are all rows.
#pragma once

#include <torch/types.h>

#include "calque/kernels/layout.h"
#include "calque/kernels/rope.h"

namespace calque {

struct PaddedPairs;

struct AttentionShape {
  int64_t heads = 1;
  int64_t kv_heads = 1;  // divides heads; query head h reads key-value head h / (heads / kv_heads)
  int64_t head_size = 64;
  double scale = 1.0;          // usually 1 / √head_size
  int64_t sliding_window = 0;  // a row attends to rows less than this far away; 0: to all

  int64_t query_size() const { return heads * head_size; }
  int64_t kv_size() const { return 2 * kv_heads * head_size; }
};

// q: [queries, heads · head_size]; kv: [rows, 2 · kv_heads · head_size], all keys before all values.
// rope: null for models without RoPE. padded: what padding_for() made of the layout; null: it is made where
// it is needed. Returns [queries, heads · head_size].
torch::Tensor attention(const torch::Tensor& q, const torch::Tensor& kv, const Layout& layout,
                        const AttentionShape& shape, const RopeTable* rope,
                        const PaddedPairs* padded = nullptr);

// The same with q, k and v side by side in one tensor, [rows, q | k | v]; every row is a query.
torch::Tensor attention(const torch::Tensor& qkv, const Layout& layout, const AttentionShape& shape,
                        const RopeTable* rope, const PaddedPairs* padded = nullptr);

// The attention weights of one pair: [heads, queries of the pair, rows of the pair]; each row sums to 1.
torch::Tensor attention_weights(const torch::Tensor& q, const torch::Tensor& kv, const Layout& layout,
                                const AttentionShape& shape, const RopeTable* rope, int64_t pair);

namespace portable {
torch::Tensor attention(const torch::Tensor& q, const torch::Tensor& kv, const Layout& layout,
                        const AttentionShape& shape, const RopeTable* rope, const PaddedPairs& padded);
}  // namespace portable

namespace reference {
// True where a query must not attend to a row: [queries, rows]. row: [queries, 1], column: [1, rows], both
// counted from the pair's beginning; columns below `prefix` are visible to every query.
torch::Tensor attention_mask(const torch::Tensor& row, const torch::Tensor& column, int64_t prefix,
                             int64_t sliding_window);
torch::Tensor attention(const torch::Tensor& q, const torch::Tensor& kv, const Layout& layout,
                        const AttentionShape& shape, const RopeTable* rope);
}  // namespace reference

}  // namespace calque

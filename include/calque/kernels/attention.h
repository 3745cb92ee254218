// Flat attention: softmax(q·kᵀ·scale)·v inside each pair of a flat batch, prefix or causal, with grouped
// heads and rotary positions. Queries are the rows that the layout asks for; keys and values are all rows.
#pragma once

#include <torch/types.h>

#include "calque/kernels/layout.h"
#include "calque/kernels/rotary.h"

namespace calque {

struct AttentionShape {
  int64_t heads = 1;
  int64_t key_value_heads =
      1;  // divides heads; query head h reads key-value head h / (heads / key_value_heads)
  int64_t head_width = 64;
  double scale = 1.0;  // usually 1 / √head_width
  int64_t window = 0;  // a row sees those less than this many rows away from it; 0: all

  int64_t query_width() const { return heads * head_width; }
  int64_t key_value_width() const { return 2 * key_value_heads * head_width; }
};

// q: [queries, heads · head_width]; kv: [rows, 2 · key_value_heads · head_width], all keys before all values.
// rotary: null where positions are not rotary. Gives [queries, heads · head_width].
torch::Tensor attention(const torch::Tensor& q, const torch::Tensor& kv, const Layout& layout,
                        const AttentionShape& shape, const RotaryTable* rotary);

// The same with q, k and v in one tensor [rows, q | k | v] and all rows asked for.
torch::Tensor attention(const torch::Tensor& qkv, const Layout& layout, const AttentionShape& shape,
                        const RotaryTable* rotary);

// The weights of one pair: [heads, queries of the pair, rows of the pair], each row summing to 1. For looking
// at.
torch::Tensor attention_weights(const torch::Tensor& q, const torch::Tensor& kv, const Layout& layout,
                                const AttentionShape& shape, const RotaryTable* rotary, int64_t pair);

namespace reference {
// What a row must not see, [queries, rows]. row: [queries, 1], column: [1, rows], both counted from the
// pair's beginning; columns below `prefix` are seen from everywhere.
torch::Tensor hidden_columns(const torch::Tensor& row, const torch::Tensor& column, int64_t prefix,
                             int64_t window);
torch::Tensor attention(const torch::Tensor& q, const torch::Tensor& kv, const Layout& layout,
                        const AttentionShape& shape, const RotaryTable* rotary);
}  // namespace reference

}  // namespace calque

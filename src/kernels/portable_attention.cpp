// The portable versions of attention() and cached_attention(): pairs padded to a few rectangles, each one
// call of LibTorch's fused attention, which has kernels of its own on every device.
#include <ATen/record_function.h>
#include <torch/types.h>

#include "calque/kernels/attention.h"
#include "calque/kernels/cached_attention.h"
#include "calque/kernels/padded_pairs.h"

namespace calque {
namespace {

using torch::Tensor;

// x: [rows, heads · head_size]. Returns [rows, heads, head_size].
Tensor rotated_heads(const Tensor& x, int64_t heads, const Tensor& positions, const RopeTable* rope) {
  const Tensor split = x.view({x.size(0), heads, -1});
  return rope != nullptr ? rotate(split, positions, *rope) : split;
}

// kv: [rows, k | v]. Returns the same with rotated keys.
Tensor rotated_keys(const Tensor& kv, const Layout& layout, const AttentionShape& shape,
                    const RopeTable* rope) {
  if (rope == nullptr) return kv;
  const auto parts = kv.chunk(2, 1);
  return torch::cat({rotated_heads(parts[0], shape.kv_heads, layout.positions, rope).flatten(1), parts[1]},
                    1);
}

// [pairs, kv_heads, rows, head_size] → [pairs, heads, rows, head_size]
Tensor repeat_heads(const Tensor& x, int64_t times) {
  if (times == 1) return x;
  auto sizes = x.sizes().vec();
  sizes.insert(sizes.begin() + 2, times);
  return x.unsqueeze(2).expand(sizes).flatten(1, 2);
}

Tensor mask_of(const PaddedGroup& group, int64_t sliding_window, torch::Dtype type) {
  Tensor mask = group.mask;
  if (sliding_window > 0 && group.rows > sliding_window) {
    const Tensor distance = torch::arange(group.rows, group.query_rows.options()) - group.query_rows;
    mask = mask.masked_fill(distance.abs() >= sliding_window, masked_score);
  }
  return mask.to(type);
}

// q: [queries, heads, head_size]; kv: [rows or slots, k | v], both rotated. Returns
// [queries, heads · head_size].
Tensor attend(const Tensor& q, const Tensor& kv, const PaddedPairs& padded, const AttentionShape& shape) {
  std::vector<Tensor> outputs;
  for (const PaddedGroup& group : padded.groups) {
    const Tensor q_heads = q.index_select(0, group.query_index)
                               .view({group.pairs, group.queries, shape.heads, shape.head_size})
                               .transpose(1, 2);  // [pairs, heads, queries, head_size]
    const Tensor kv_heads = kv.index_select(0, group.row_index)
                                .view({group.pairs, group.rows, 2, shape.kv_heads, shape.head_size})
                                .transpose(1, 3);  // [pairs, kv_heads, 2, rows, head_size]
    const int64_t times = shape.heads / shape.kv_heads;
    const Tensor heads = at::scaled_dot_product_attention(
        q_heads, repeat_heads(kv_heads.select(2, 0), times), repeat_heads(kv_heads.select(2, 1), times),
        mask_of(group, shape.sliding_window, q.scalar_type()), /*dropout_p=*/0, /*is_causal=*/false,
        shape.scale);  // [pairs, heads, queries, head_size]
    outputs.push_back(heads.transpose(1, 2).reshape({-1, shape.query_size()}));
  }
  const Tensor all = outputs.size() == 1 ? outputs.front() : torch::cat(outputs);
  return all.index_select(0, padded.output_index);
}

}  // namespace

Tensor portable::attention(const Tensor& q, const Tensor& kv, const Layout& layout,
                           const AttentionShape& shape, const RopeTable* rope, const PaddedPairs& padded) {
  RECORD_USER_SCOPE("attention");
  const Tensor positions =
      layout.queries_all_rows() ? layout.positions : layout.positions.index_select(0, layout.query_rows);
  return attend(rotated_heads(q, shape.heads, positions, rope), rotated_keys(kv, layout, shape, rope), padded,
                shape);
}

Tensor portable::cached_attention(const Tensor& q, const Tensor& kv, const Tensor& cache,
                                  const Layout& layout, const AttentionShape& shape, const RopeTable* rope,
                                  const PaddedPairs& padded) {
  cache.index_copy_(0, padded.slots, rotated_keys(kv, layout, shape, rope));
  const Tensor positions =
      layout.queries_all_rows() ? layout.positions : layout.positions.index_select(0, layout.query_rows);
  return attend(rotated_heads(q, shape.heads, positions, rope), cache, padded, shape);
}

}  // namespace calque

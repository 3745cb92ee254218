#include "calque/kernels/cached_attention.h"

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "calque/kernels/simd_loops.h"
#include "fast.h"

namespace calque {

using torch::Tensor;

Tensor cached_attention(const Tensor& q, const Tensor& kv, const Tensor& cache, const Layout& layout,
                        const CacheRows& rows, const AttentionShape& shape, const RotaryTable* rotary) {
  if (!is_fast(q)) return reference::cached_attention(q, kv, cache, layout, rows, shape, rotary);
  const Tensor out = torch::empty({layout.queries(), shape.query_width()}, q.options());
  simd::CachedAttentionWork work{};
  work.query_offsets = layout.query_offsets.data();
  work.query_rows = layout.query_rows.const_data_ptr<int64_t>();
  work.positions = layout.positions.const_data_ptr<int64_t>();
  work.seen = rows.seen.data();
  work.seen_offsets = rows.seen_offsets.data();
  work.prefixes = rows.prefixes.data();
  work.slots = rows.slots.data();
  work.heads = shape.heads;
  work.key_value_heads = shape.key_value_heads;
  work.head_width = shape.head_width;
  work.window = shape.window;
  work.scale = static_cast<float>(shape.scale);
  work.cosines = rotary != nullptr ? rotary->cosines.const_data_ptr<float>() : nullptr;
  work.sines = rotary != nullptr ? rotary->sines.const_data_ptr<float>() : nullptr;
  work.q = q.const_data_ptr<float>();  // a part of a wider tensor, as kv may be: rows are a stride apart
  work.q_stride = q.stride(0);
  work.kv = kv.const_data_ptr<float>();
  work.kv_stride = kv.stride(0);
  work.cache = cache.mutable_data_ptr<float>();
  work.out = out.mutable_data_ptr<float>();
  at::parallel_for(0, layout.rows(), 64,
                   [&](int64_t begin, int64_t end) { simd::store_in_cache(work, begin, end); });
  at::parallel_for(0, layout.pairs() * shape.key_value_heads, 8,
                   [&](int64_t begin, int64_t end) { simd::cached_attention(work, begin, end); });
  return out;
}

Tensor reference::cached_attention(const Tensor& q, const Tensor& kv, const Tensor& cache,
                                   const Layout& layout, const CacheRows& rows, const AttentionShape& shape,
                                   const RotaryTable* rotary) {
  const int64_t half = shape.key_value_width() / 2, group = shape.heads / shape.key_value_heads;
  const auto turned = [&](const Tensor& x, int64_t heads, const Tensor& positions) {
    const Tensor split = x.reshape({x.size(0), heads, shape.head_width});
    return rotary != nullptr ? rotate(split, positions, *rotary) : split;
  };
  const auto indices = [&](auto begin, auto end) {
    return index_tensor(std::vector<int64_t>(begin, end), cache.device());
  };
  const Tensor keys = turned(kv.slice(1, 0, half), shape.key_value_heads, layout.positions).flatten(1);
  cache.index_copy_(0, indices(rows.slots.begin(), rows.slots.end()),
                    torch::cat({keys, kv.slice(1, half)}, 1));
  const Tensor queries = turned(q, shape.heads, layout.positions.index_select(0, layout.query_rows));
  std::vector<Tensor> outputs;
  for (int64_t pair = 0; pair < layout.pairs(); ++pair) {
    const auto seen = rows.seen.begin();
    const Tensor known =
        cache.index_select(0, indices(seen + rows.seen_offsets[pair], seen + rows.seen_offsets[pair + 1]));
    const auto heads = [&](int64_t begin) {  // [heads, seen, head_width]
      return known.slice(1, begin, begin + half)
          .reshape({-1, shape.key_value_heads, shape.head_width})
          .transpose(0, 1)
          .repeat_interleave(group, 0);
    };
    const Tensor q_heads =
        queries.slice(0, layout.query_offsets[pair], layout.query_offsets[pair + 1]).transpose(0, 1);
    const int64_t count = known.size(0), asked = q_heads.size(1);
    const auto options = layout.positions.options();
    const Tensor row = torch::arange(count - asked, count, options).unsqueeze(1);  // [queries, 1]
    const Tensor column = torch::arange(count, options).unsqueeze(0);              // [1, seen]
    const Tensor hidden = hidden_columns(row, column, rows.prefixes[pair], shape.window);
    const Tensor scores = torch::matmul(q_heads, heads(0).transpose(1, 2)) * shape.scale;
    const Tensor weights = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()).softmax(-1);
    outputs.push_back(torch::matmul(weights, heads(half)).transpose(0, 1).flatten(1));
  }
  return torch::cat(outputs);
}

}  // namespace calque

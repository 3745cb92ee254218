#include "calque/kernels/cached_attention.h"

#include <torch/types.h>

#include <limits>

#include "activation_memory.h"
#include "calque/kernels/padded_pairs.h"
#include "calque/kernels/threads.h"
#include "fast.h"
#include "simd_loops.h"

namespace calque {

using torch::Tensor;

CacheIndex CacheIndex::slice_pairs(int64_t begin, int64_t end, int64_t first_row, int64_t rows) const {
  const auto part = [](const auto& from, int64_t first, int64_t count) {
    return from.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  };
  return {part(slots, first_row, rows), visible, part(visible_offsets, begin, end - begin + 1),
          part(prefix_lengths, begin, end - begin)};
}

namespace {

Tensor run_cached(const float* q, int64_t q_stride, const float* kv, int64_t kv_stride, const Tensor& cache,
                  const Layout& layout, const CacheIndex& index, const AttentionShape& shape,
                  const RopeTable* rope) {
  const Tensor out = empty_activation({layout.queries(), shape.query_size()});
  simd::CachedAttentionWork work{};
  work.query_offsets = layout.query_offsets.data();
  work.query_rows = layout.query_rows.const_data_ptr<int64_t>();
  work.positions = layout.positions.const_data_ptr<int64_t>();
  work.visible = index.visible.data();
  work.visible_offsets = index.visible_offsets.data();
  work.prefix_lengths = index.prefix_lengths.data();
  work.slots = index.slots.data();
  work.heads = shape.heads;
  work.kv_heads = shape.kv_heads;
  work.head_size = shape.head_size;
  work.sliding_window = shape.sliding_window;
  work.scale = static_cast<float>(shape.scale);
  work.cosines = rope != nullptr ? rope->cosines.const_data_ptr<float>() : nullptr;
  work.sines = rope != nullptr ? rope->sines.const_data_ptr<float>() : nullptr;
  work.q = q;
  work.q_stride = q_stride;
  work.kv = kv;
  work.kv_stride = kv_stride;
  work.cache = cache.mutable_data_ptr<float>();
  work.out = out.mutable_data_ptr<float>();
  parallel_rows(layout.rows(), 64,
                [&](int64_t begin, int64_t end) { simd::store_in_cache(work, begin, end); });
  parallel_rows(layout.pairs() * shape.kv_heads, 8,
                [&](int64_t begin, int64_t end) { simd::cached_attention(work, begin, end); });
  return out;
}

}  // namespace

Tensor cached_attention(const Tensor& q, const Tensor& kv, const Tensor& cache, const Layout& layout,
                        const CacheIndex& index, const AttentionShape& shape, const RopeTable* rope,
                        const PaddedPairs* padded) {
  if (!is_fast(q))
    return portable::cached_attention(q, kv, cache, layout, shape, rope,
                                      padded != nullptr ? *padded : pad_pairs(layout, &index));
  return run_cached(q.const_data_ptr<float>(), q.stride(0), kv.const_data_ptr<float>(), kv.stride(0), cache,
                    layout, index, shape, rope);
}

Tensor cached_attention(const Tensor& qkv, const Tensor& cache, const Layout& layout, const CacheIndex& index,
                        const AttentionShape& shape, const RopeTable* rope, const PaddedPairs* padded) {
  if (!is_fast(qkv)) {
    const auto parts = qkv.split_with_sizes({shape.query_size(), shape.kv_size()}, 1);
    return cached_attention(parts[0], parts[1], cache, layout, index, shape, rope, padded);
  }
  const float* q = qkv.const_data_ptr<float>();
  return run_cached(q, qkv.stride(0), q + shape.query_size(), qkv.stride(0), cache, layout, index, shape,
                    rope);
}

Tensor reference::cached_attention(const Tensor& q, const Tensor& kv, const Tensor& cache,
                                   const Layout& layout, const CacheIndex& index, const AttentionShape& shape,
                                   const RopeTable* rope) {
  const int64_t half = shape.kv_size() / 2, group = shape.heads / shape.kv_heads;
  const auto rotated = [&](const Tensor& x, int64_t heads, const Tensor& positions) {
    const Tensor split = x.reshape({x.size(0), heads, shape.head_size});
    return rope != nullptr ? rotate(split, positions, *rope) : split;
  };
  const auto indices = [&](std::span<const int32_t> values) {
    return index_tensor(std::vector<int64_t>(values.begin(), values.end()), cache.device());
  };
  const Tensor keys = rotated(kv.slice(1, 0, half), shape.kv_heads, layout.positions).flatten(1);
  cache.index_copy_(0, indices(index.slots), torch::cat({keys, kv.slice(1, half)}, 1));
  const Tensor queries = rotated(q, shape.heads, layout.positions.index_select(0, layout.query_rows));
  std::vector<Tensor> outputs;
  for (int64_t pair = 0; pair < layout.pairs(); ++pair) {
    const auto at = static_cast<size_t>(pair);
    const auto first = static_cast<size_t>(index.visible_offsets[at]),
               last = static_cast<size_t>(index.visible_offsets[at + 1]);
    const Tensor cached =
        cache.index_select(0, indices(index.visible.subspan(first, last - first)));  // [visible, k | v]
    const auto heads = [&](int64_t begin) {  // [heads, visible, head_size]
      return cached.slice(1, begin, begin + half)
          .reshape({-1, shape.kv_heads, shape.head_size})
          .transpose(0, 1)
          .repeat_interleave(group, 0);
    };
    const Tensor q_heads =
        queries.slice(0, layout.query_offsets[at], layout.query_offsets[at + 1]).transpose(0, 1);
    const int64_t count = cached.size(0), query_count = q_heads.size(1);
    const auto options = layout.positions.options();
    const Tensor row = torch::arange(count - query_count, count, options).unsqueeze(1);  // [queries, 1]
    const Tensor column = torch::arange(count, options).unsqueeze(0);                    // [1, visible]
    const Tensor mask = attention_mask(row, column, index.prefix_lengths[at], shape.sliding_window);
    const Tensor scores = torch::matmul(q_heads, heads(0).transpose(1, 2)) * shape.scale;
    const Tensor weights = scores.masked_fill(mask, -std::numeric_limits<double>::infinity()).softmax(-1);
    outputs.push_back(torch::matmul(weights, heads(half)).transpose(0, 1).flatten(1));
  }
  return torch::cat(outputs);
}

}  // namespace calque

#include "calque/kernels/attention.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "calque/kernels/padded_pairs.h"
#include "calque/kernels/threads.h"
#include "fast.h"
#include "simd_loops.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What the backward pass needs from the forward pass besides tensors.
struct Saved : torch::CustomClassHolder {
  Layout layout;
  AttentionShape shape;
  RopeTable rope;  // undefined tensors for models without RoPE
};

// kv: undefined if `q` is a fused tensor with q, k and v side by side.
simd::AttentionWork make_work(const Tensor& q, const Tensor& kv, const Saved& saved) {
  const AttentionShape& shape = saved.shape;
  simd::AttentionWork work{};
  work.offsets = saved.layout.offsets.data();
  work.prefix_ends = saved.layout.prefix_ends.data();
  work.query_offsets = saved.layout.query_offsets.data();
  work.positions = saved.layout.positions.const_data_ptr<int64_t>();
  work.heads = shape.heads;
  work.kv_heads = shape.kv_heads;
  work.head_size = shape.head_size;
  work.scale = static_cast<float>(shape.scale);
  const bool rope = saved.rope.cosines.defined();
  work.cosines = rope ? saved.rope.cosines.const_data_ptr<float>() : nullptr;
  work.sines = rope ? saved.rope.sines.const_data_ptr<float>() : nullptr;
  work.q = q.const_data_ptr<float>();
  work.q_stride = q.size(1);
  work.k = kv.defined() ? kv.const_data_ptr<float>() : work.q + shape.query_size();
  work.kv_stride = kv.defined() ? kv.size(1) : q.size(1);
  work.v = work.k + shape.kv_size() / 2;
  return work;
}

class FastAttention : public torch::autograd::Function<FastAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& q_given,
                        const std::optional<Tensor>& kv_given, const c10::intrusive_ptr<Saved>& saved) {
    RECORD_USER_SCOPE("attention");
    const Tensor q = q_given.contiguous();
    const Tensor kv = kv_given ? kv_given->contiguous() : Tensor();
    const Layout& layout = saved->layout;
    const AttentionShape& shape = saved->shape;
    const Tensor out = torch::empty({layout.queries(), shape.query_size()}, q.options());
    const Tensor log_sums = torch::empty({layout.queries(), shape.heads}, q.options());
    simd::AttentionWork work = make_work(q, kv, *saved);
    work.out = out.mutable_data_ptr<float>();
    work.log_sums = log_sums.mutable_data_ptr<float>();
    parallel_units(layout.pairs() * shape.kv_heads, num_threads(),
                   [&](int64_t unit) { simd::attention_forward(work, unit, unit + 1); });
    context->save_for_backward({q, kv, out, log_sums});
    context->saved_data["saved"] = c10::IValue::make_capsule(saved);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    RECORD_USER_SCOPE("attention");
    const variable_list kept = context->get_saved_variables();
    const Tensor &q = kept[0], &kv = kept[1], &out = kept[2], &log_sums = kept[3];
    const auto saved = c10::static_intrusive_pointer_cast<Saved>(context->saved_data["saved"].toCapsule());
    const AttentionShape& shape = saved->shape;
    const Tensor d_out = gradients[0].contiguous();
    const Tensor dq = torch::empty_like(q);
    const Tensor dkv = kv.defined() ? torch::empty_like(kv) : Tensor();
    simd::AttentionWork work = make_work(q, kv, *saved);
    work.out = out.mutable_data_ptr<float>();
    work.log_sums = log_sums.mutable_data_ptr<float>();
    work.d_out = d_out.const_data_ptr<float>();
    work.dq = dq.mutable_data_ptr<float>();
    work.dq_stride = work.q_stride;
    work.dk = kv.defined() ? dkv.mutable_data_ptr<float>() : work.dq + shape.query_size();
    work.dkv_stride = work.kv_stride;
    work.dv = work.dk + shape.kv_size() / 2;
    parallel_units(saved->layout.pairs() * shape.kv_heads, num_threads(),
                   [&](int64_t unit) { simd::attention_backward(work, unit, unit + 1); });
    return {dq, dkv, Tensor()};
  }
};

Tensor fast_attention(const Tensor& q, const std::optional<Tensor>& kv, const Layout& layout,
                      const AttentionShape& shape, const RopeTable* rope) {
  auto saved = c10::make_intrusive<Saved>();
  saved->layout = layout;
  saved->shape = shape;
  if (rope != nullptr) saved->rope = *rope;
  return FastAttention::apply(q, kv, saved);
}

// The fast kernel does not implement sliding windows. It is used if every pair fits into the window.
bool can_use_fast_kernel(const Tensor& q, const Layout& layout, const AttentionShape& shape) {
  if (!is_fast(q)) return false;
  for (int64_t pair = 0; shape.sliding_window > 0 && pair < layout.pairs(); ++pair) {
    if (layout.offsets[pair + 1] - layout.offsets[pair] > shape.sliding_window) return false;
  }
  return true;
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& kv, const Layout& layout, const AttentionShape& shape,
                 const RopeTable* rope, const PaddedPairs* padded) {
  if (can_use_fast_kernel(q, layout, shape)) return fast_attention(q, kv, layout, shape, rope);
  return portable::attention(q, kv, layout, shape, rope, padded != nullptr ? *padded : pad_pairs(layout));
}

Tensor attention(const Tensor& qkv, const Layout& layout, const AttentionShape& shape, const RopeTable* rope,
                 const PaddedPairs* padded) {
  if (can_use_fast_kernel(qkv, layout, shape)) return fast_attention(qkv, std::nullopt, layout, shape, rope);
  const auto parts = qkv.split_with_sizes({shape.query_size(), shape.kv_size()}, 1);
  return attention(parts[0], parts[1], layout, shape, rope, padded);
}

namespace {

// q, k and v of one pair with RoPE applied: [heads, queries, head_size], then twice [heads, rows, head_size].
std::array<Tensor, 3> pair_heads(const Tensor& q, const Tensor& kv, const Layout& layout,
                                 const AttentionShape& shape, const RopeTable* rope, int64_t pair) {
  const int64_t begin = layout.offsets[pair], end = layout.offsets[pair + 1];
  const auto kv_heads = kv.slice(0, begin, end).view({end - begin, 2, shape.kv_heads, shape.head_size});
  Tensor q_heads = q.slice(0, layout.query_offsets[pair], layout.query_offsets[pair + 1])
                       .view({-1, shape.heads, shape.head_size});
  Tensor k_heads = kv_heads.select(1, 0), v_heads = kv_heads.select(1, 1);  // [rows, kv_heads, head_size]
  if (rope != nullptr) {
    const Tensor positions = layout.positions.slice(0, begin, end);
    q_heads = rotate(q_heads, positions.slice(0, end - begin - q_heads.size(0)), *rope);
    k_heads = rotate(k_heads, positions, *rope);
  }
  const int64_t group = shape.heads / shape.kv_heads;
  return {q_heads.transpose(0, 1), k_heads.transpose(0, 1).repeat_interleave(group, 0),
          v_heads.transpose(0, 1).repeat_interleave(group, 0)};
}

}  // namespace

Tensor reference::attention_mask(const Tensor& row, const Tensor& column, int64_t prefix,
                                 int64_t sliding_window) {
  const Tensor masked = (column > row) & (column >= prefix);
  return sliding_window > 0 ? masked | ((column - row).abs() >= sliding_window) : masked;
}

namespace {

Tensor pair_weights(const Tensor& q, const Tensor& k, const Layout& layout, const AttentionShape& shape,
                    int64_t pair) {
  const int64_t rows = k.size(1), queries = q.size(1),
                prefix = layout.prefix_ends[pair] - layout.offsets[pair];
  const auto options = layout.positions.options();
  const Tensor row = torch::arange(rows - queries, rows, options).unsqueeze(1);  // [queries, 1]
  const Tensor column = torch::arange(rows, options).unsqueeze(0);               // [1, rows]
  const Tensor masked =
      reference::attention_mask(row, column, prefix, shape.sliding_window);  // [queries, rows]
  const Tensor scores = torch::matmul(q, k.transpose(1, 2)) * shape.scale;   // [heads, queries, rows]
  return scores.masked_fill(masked, -std::numeric_limits<double>::infinity()).softmax(-1);
}

}  // namespace

Tensor attention_weights(const Tensor& q, const Tensor& kv, const Layout& layout, const AttentionShape& shape,
                         const RopeTable* rope, int64_t pair) {
  const auto [q_heads, k_heads, v_heads] = pair_heads(q, kv, layout, shape, rope, pair);
  return pair_weights(q_heads, k_heads, layout, shape, pair);
}

Tensor reference::attention(const Tensor& q, const Tensor& kv, const Layout& layout,
                            const AttentionShape& shape, const RopeTable* rope) {
  std::vector<Tensor> outputs;
  for (int64_t pair = 0; pair < layout.pairs(); ++pair) {
    const auto [q_heads, k_heads, v_heads] = pair_heads(q, kv, layout, shape, rope, pair);
    const Tensor weights = pair_weights(q_heads, k_heads, layout, shape, pair);  // [heads, queries, rows]
    outputs.push_back(
        torch::matmul(weights, v_heads).transpose(0, 1).flatten(1));  // [queries, heads · head_size]
  }
  return torch::cat(outputs);
}

}  // namespace calque

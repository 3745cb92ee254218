#include "calque/kernels/attention.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "calque/kernels/simd_loops.h"
#include "calque/kernels/threads.h"
#include "fast.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What the backward pass needs of the forward one besides tensors.
struct Saved : torch::CustomClassHolder {
  Layout layout;
  AttentionShape shape;
  RotaryTable rotary;  // undefined tensors without rotary positions
};

// q and kv either apart, or in one tensor (kv undefined) with q, k and v side by side.
simd::AttentionWork make_work(const Tensor& q, const Tensor& kv, const Saved& saved) {
  const AttentionShape& shape = saved.shape;
  simd::AttentionWork work{};
  work.offsets = saved.layout.offsets.data();
  work.prefix_ends = saved.layout.prefix_ends.data();
  work.query_offsets = saved.layout.query_offsets.data();
  work.positions = saved.layout.positions.const_data_ptr<int64_t>();
  work.heads = shape.heads;
  work.key_value_heads = shape.key_value_heads;
  work.head_width = shape.head_width;
  work.scale = static_cast<float>(shape.scale);
  const bool rotary = saved.rotary.cosines.defined();
  work.cosines = rotary ? saved.rotary.cosines.const_data_ptr<float>() : nullptr;
  work.sines = rotary ? saved.rotary.sines.const_data_ptr<float>() : nullptr;
  work.q = q.const_data_ptr<float>();
  work.q_stride = q.size(1);
  work.k = kv.defined() ? kv.const_data_ptr<float>() : work.q + shape.query_width();
  work.kv_stride = kv.defined() ? kv.size(1) : q.size(1);
  work.v = work.k + shape.key_value_width() / 2;
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
    const Tensor out = torch::empty({layout.queries(), shape.query_width()}, q.options());
    const Tensor log_sums = torch::empty({layout.queries(), shape.heads}, q.options());
    simd::AttentionWork work = make_work(q, kv, *saved);
    work.out = out.mutable_data_ptr<float>();
    work.log_sums = log_sums.mutable_data_ptr<float>();
    deal_out(layout.pairs() * shape.key_value_heads, at::get_num_threads(),
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
    work.dk = kv.defined() ? dkv.mutable_data_ptr<float>() : work.dq + shape.query_width();
    work.dkv_stride = work.kv_stride;
    work.dv = work.dk + shape.key_value_width() / 2;
    deal_out(saved->layout.pairs() * shape.key_value_heads, at::get_num_threads(),
             [&](int64_t unit) { simd::attention_backward(work, unit, unit + 1); });
    return {dq, dkv, Tensor()};
  }
};

Tensor fast_attention(const Tensor& q, const std::optional<Tensor>& kv, const Layout& layout,
                      const AttentionShape& shape, const RotaryTable* rotary) {
  auto saved = c10::make_intrusive<Saved>();
  saved->layout = layout;
  saved->shape = shape;
  if (rotary != nullptr) saved->rotary = *rotary;
  return FastAttention::apply(q, kv, saved);
}

// The fast kernel has no window: it serves where every pair fits into one.
bool is_fast_here(const Tensor& q, const Layout& layout, const AttentionShape& shape) {
  if (!is_fast(q)) return false;
  for (int64_t pair = 0; shape.window > 0 && pair < layout.pairs(); ++pair) {
    if (layout.offsets[pair + 1] - layout.offsets[pair] > shape.window) return false;
  }
  return true;
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& kv, const Layout& layout, const AttentionShape& shape,
                 const RotaryTable* rotary) {
  return is_fast_here(q, layout, shape) ? fast_attention(q, kv, layout, shape, rotary)
                                        : reference::attention(q, kv, layout, shape, rotary);
}

Tensor attention(const Tensor& qkv, const Layout& layout, const AttentionShape& shape,
                 const RotaryTable* rotary) {
  if (is_fast_here(qkv, layout, shape)) return fast_attention(qkv, std::nullopt, layout, shape, rotary);
  const auto parts = qkv.split_with_sizes({shape.query_width(), shape.key_value_width()}, 1);
  return reference::attention(parts[0], parts[1], layout, shape, rotary);
}

namespace {

// q, k and v of one pair, turned: [heads, queries, head_width], [heads, rows, head_width] twice.
std::array<Tensor, 3> pair_heads(const Tensor& q, const Tensor& kv, const Layout& layout,
                                 const AttentionShape& shape, const RotaryTable* rotary, int64_t pair) {
  const int64_t begin = layout.offsets[pair], end = layout.offsets[pair + 1];
  const auto kv_heads =
      kv.slice(0, begin, end).view({end - begin, 2, shape.key_value_heads, shape.head_width});
  Tensor q_heads = q.slice(0, layout.query_offsets[pair], layout.query_offsets[pair + 1])
                       .view({-1, shape.heads, shape.head_width});
  Tensor k_heads = kv_heads.select(1, 0),
         v_heads = kv_heads.select(1, 1);  // [rows, key_value_heads, head_width]
  if (rotary != nullptr) {
    const Tensor positions = layout.positions.slice(0, begin, end);
    q_heads = rotate(q_heads, positions.slice(0, end - begin - q_heads.size(0)), *rotary);
    k_heads = rotate(k_heads, positions, *rotary);
  }
  const int64_t group = shape.heads / shape.key_value_heads;
  return {q_heads.transpose(0, 1), k_heads.transpose(0, 1).repeat_interleave(group, 0),
          v_heads.transpose(0, 1).repeat_interleave(group, 0)};
}

}  // namespace

Tensor reference::hidden_columns(const Tensor& row, const Tensor& column, int64_t prefix, int64_t window) {
  const Tensor hidden = (column > row) & (column >= prefix);
  return window > 0 ? hidden | ((column - row).abs() >= window) : hidden;
}

namespace {

Tensor pair_weights(const Tensor& q, const Tensor& k, const Layout& layout, const AttentionShape& shape,
                    int64_t pair) {
  const int64_t rows = k.size(1), queries = q.size(1),
                prefix = layout.prefix_ends[pair] - layout.offsets[pair];
  const auto options = layout.positions.options();
  const Tensor row = torch::arange(rows - queries, rows, options).unsqueeze(1);        // [queries, 1]
  const Tensor column = torch::arange(rows, options).unsqueeze(0);                     // [1, rows]
  const Tensor hidden = reference::hidden_columns(row, column, prefix, shape.window);  // [queries, rows]
  const Tensor scores = torch::matmul(q, k.transpose(1, 2)) * shape.scale;  // [heads, queries, rows]
  return scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()).softmax(-1);
}

}  // namespace

Tensor attention_weights(const Tensor& q, const Tensor& kv, const Layout& layout, const AttentionShape& shape,
                         const RotaryTable* rotary, int64_t pair) {
  const auto [q_heads, k_heads, v_heads] = pair_heads(q, kv, layout, shape, rotary, pair);
  return pair_weights(q_heads, k_heads, layout, shape, pair);
}

Tensor reference::attention(const Tensor& q, const Tensor& kv, const Layout& layout,
                            const AttentionShape& shape, const RotaryTable* rotary) {
  std::vector<Tensor> outputs;
  for (int64_t pair = 0; pair < layout.pairs(); ++pair) {
    const auto [q_heads, k_heads, v_heads] = pair_heads(q, kv, layout, shape, rotary, pair);
    const Tensor weights = pair_weights(q_heads, k_heads, layout, shape, pair);  // [heads, queries, rows]
    outputs.push_back(
        torch::matmul(weights, v_heads).transpose(0, 1).flatten(1));  // [queries, heads · head_width]
  }
  return torch::cat(outputs);
}

}  // namespace calque

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "calque/kernels/activation.h"
#include "calque/kernels/cached_attention.h"
#include "calque/kernels/candidates.h"
#include "calque/kernels/linear.h"
#include "calque/kernels/linear_cross_entropy.h"
#include "calque/kernels/norm.h"
#include "calque/kernels/portable.h"
#include "calque/model/batch_layout.h"
#include "calque/train/selftest.h"
#include "selftest_batch.h"

namespace calque {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;
using TensorFunction = std::function<Tensor(const Tensors&)>;

double largest_difference(const Tensor& found, const Tensor& expected) {
  const Tensor on_cpu = found.to(torch::kCPU, torch::kFloat32);
  if (on_cpu.sizes() != expected.sizes()) return INFINITY;
  const double size = std::max(1.0, expected.abs().max().item<double>());
  return (on_cpu - expected).abs().max().item<double>() / size;
}

// The value and the gradients of all inputs, for a loss that weighs the outputs by their index.
Tensors value_and_gradients(const TensorFunction& function, const Tensors& inputs,
                            const torch::Device& device) {
  Tensors leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.to(device).detach().clone().requires_grad_());
  const Tensor value = function(leaves);
  const Tensor weights = torch::arange(value.numel(), value.options()).view(value.sizes()).cos();
  (value * weights).sum().backward();
  Tensors all = {value.detach()};
  for (const Tensor& leaf : leaves) all.push_back(leaf.grad());
  return all;
}

class KernelChecks {
 public:
  explicit KernelChecks(const SelftestSide& tested) : tested_(tested) {}

  std::vector<SelftestCheck> run() {
    check_attention("attention, causal", AttentionKind::causal, {4, 4, 16, 0.25}, false);
    check_attention("attention, prefix, grouped heads, RoPE", AttentionKind::prefix, {4, 2, 16, 0.25}, true);
    check_attention("attention, sliding window", AttentionKind::prefix, {4, 1, 16, 0.25, 7}, true);
    check_cached_attention();
    check_rows();
    for (const auto& [name, type] : {std::pair{"bfloat16", torch::kBFloat16}, {"float16", torch::kFloat16}}) {
      compare(
          std::string("product in ") + name, 1e-2,
          {torch::randn({70, 64}), torch::randn({40, 64}), torch::randn({40})},
          [type = type](const Tensors& in) { return linear(in[0], in[1], in[2], type); },
          [type = type](const Tensors& in) { return reference::linear(in[0], in[1], in[2], type); });
    }
    check_loss("float32", torch::kFloat32, 1e-4);
    check_loss("bfloat16", torch::kBFloat16, 2e-2);
    check_loss("float16", torch::kFloat16, 1e-2);
    check_candidates();
    return std::move(checks_);
  }

 private:
  void compare(const std::string& name, double allowed, const Tensors& inputs, const TensorFunction& kernel,
               const TensorFunction& reference) {
    checks_.push_back(run_check(name, allowed, [&](SelftestCheck& check) {
      const Tensors expected = value_and_gradients(reference, inputs, torch::kCPU);
      const PortableKernels portable(tested_.portable);
      const Tensors found = value_and_gradients(kernel, inputs, tested_.device);
      for (size_t i = 0; i < expected.size(); ++i) {
        const double difference = largest_difference(found[i], expected[i]);
        if (!(difference <= check.difference)) check.difference = difference;
      }
    }));
  }

  void check_attention(const std::string& name, AttentionKind kind, const AttentionShape& shape,
                       bool with_rope) {
    const Batch batch = selftest_batch(1, 400, 60, 50);
    for (const bool all : {true, false}) {  // every row is a query, or those with loss
      const auto layout_on = [&](const torch::Device& device) {
        const Layout layout = batch_layout(batch, ModelConfig{.attention = kind}, device);
        return all ? query_all_rows(layout) : layout;
      };
      const Layout here = layout_on(torch::kCPU), there = layout_on(tested_.device);
      const RopeTable rope = make_rope_table(200, shape.head_size, 10000),
                      rope_there = make_rope_table(200, shape.head_size, 10000, tested_.device);
      compare(
          name + (all ? "" : ", some queries"), 1e-4,
          {torch::randn({here.queries(), shape.query_size()}), torch::randn({here.rows(), shape.kv_size()})},
          [&](const Tensors& in) {
            return attention(in[0], in[1], there, shape, with_rope ? &rope_there : nullptr);
          },
          [&](const Tensors& in) {
            return reference::attention(in[0], in[1], here, shape, with_rope ? &rope : nullptr);
          });
    }
  }

  // Rows that continue sequences of 1 … 40 earlier ones.
  void check_cached_attention() {
    checks_.push_back(run_check("cached attention", 1e-4, [&](SelftestCheck& check) {
      const torch::NoGradGuard no_gradients;
      const AttentionShape shape{4, 2, 16, 0.25};
      constexpr int32_t pairs = 40;
      Layout layout;
      layout.offsets = {0};
      std::vector<int64_t> positions, visible_offsets = {0}, prefix_lengths(pairs, 0);
      std::vector<int32_t> slots, visible;
      for (int32_t pair = 0; pair < pairs; ++pair) {
        slots.push_back(pair);
        for (int32_t earlier = 0; earlier <= pair; ++earlier)
          visible.push_back(pairs + (pair * 7 + earlier) % 60);
        visible.push_back(pair);
        visible_offsets.push_back(static_cast<int64_t>(visible.size()));
        positions.push_back(pair + 1);
        layout.offsets.push_back(layout.rows() + 1);
        layout.prefix_ends.push_back(0);
      }
      layout.query_offsets = layout.offsets;
      const CacheIndex index{slots, visible, visible_offsets, prefix_lengths};
      const Tensor q = torch::randn({pairs, shape.query_size()}), kv = torch::randn({pairs, shape.kv_size()}),
                   cache = torch::randn({100, shape.kv_size()});
      const auto run_on = [&](const torch::Device& device, const auto& kernel) {
        layout.positions = index_tensor(positions, device);
        layout.query_rows = torch::arange(pairs, layout.positions.options());
        const RopeTable rope = make_rope_table(64, shape.head_size, 10000, device);
        return kernel(q.to(device), kv.to(device), cache.to(device).clone(), rope);
      };
      const Tensor expected = run_on(
          torch::kCPU, [&](const Tensor& a, const Tensor& b, const Tensor& kept, const RopeTable& rope) {
            return reference::cached_attention(a, b, kept, layout, index, shape, &rope);
          });
      const PortableKernels portable(tested_.portable);
      const Tensor found = run_on(
          tested_.device, [&](const Tensor& a, const Tensor& b, const Tensor& kept, const RopeTable& rope) {
            return cached_attention(a, b, kept, layout, index, shape, &rope);
          });
      check.difference = largest_difference(found, expected);
    }));
  }

  void check_rows() {
    compare(
        "RMSNorm", 1e-4, {torch::randn({40, 96}), torch::randn({96})},
        [](const Tensors& in) { return rms_norm(in[0], in[1], 1e-5); },
        [](const Tensors& in) { return reference::rms_norm(in[0], in[1], 1e-5); });
    compare(
        "LayerNorm", 1e-4, {torch::randn({40, 96}), torch::randn({96}), torch::randn({96})},
        [](const Tensors& in) { return layer_norm(in[0], in[1], in[2], 1e-5); },
        [](const Tensors& in) { return torch::layer_norm(in[0], {96}, in[1], in[2], 1e-5); });
    for (const Gate gate : {Gate::silu, Gate::gelu}) {
      compare(
          gate == Gate::silu ? "SwiGLU" : "GeGLU", 1e-4, {torch::randn({40, 96})},  // mutate: display only
          [gate](const Tensors& in) { return gated_activation(in[0], gate); },
          [gate](const Tensors& in) { return reference::gated_activation(in[0], gate); });
    }
  }

  void check_loss(const std::string& name, torch::Dtype type, double allowed) {
    const Tensor labels = torch::randint(500, {300}, torch::kInt64), there = labels.to(tested_.device);
    compare(
        "cross-entropy, " + name, allowed, {torch::randn({300, 32}), torch::randn({500, 32})},
        [&](const Tensors& in) { return linear_cross_entropy(in[0], in[1], there, 0.1, type).smoothed; },
        [&](const Tensors& in) {
          return reference::linear_cross_entropy(in[0], in[1], labels, 0.1, type).smoothed;
        });
  }

  void check_candidates() {
    checks_.push_back(run_check("best next tokens, with ties", 1e-4, [&](SelftestCheck& check) {
      const torch::NoGradGuard no_gradients;
      const Tensor logits = (torch::randn({9, 300}) * 4).round();
      const std::vector<int32_t> forbidden = {0, 7};
      const std::vector<BannedToken> banned = {{0, 3}, {8, 299}};
      const Candidates expected = reference::top_candidates(logits.clone(), 8, forbidden, banned);
      const PortableKernels portable(tested_.portable);
      const Candidates found = top_candidates(logits.to(tested_.device).clone(), 8, forbidden, banned);
      if (found.tokens != expected.tokens) throw std::runtime_error("other tokens");
      for (size_t i = 0; i < expected.log_probabilities.size(); ++i)
        check.difference =
            std::max(check.difference, std::abs(static_cast<double>(found.log_probabilities[i]) -
                                                static_cast<double>(expected.log_probabilities[i])));
    }));
  }

  SelftestSide tested_;
  std::vector<SelftestCheck> checks_;
};

}  // namespace

std::vector<SelftestCheck> check_kernels(const SelftestSide& tested) {
  at::manual_seed(1);
  return KernelChecks(tested).run();
}

}  // namespace calque

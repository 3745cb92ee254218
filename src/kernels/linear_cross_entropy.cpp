#include "calque/kernels/linear_cross_entropy.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "calque/kernels/bfloat16_linear.h"
#include "fast.h"
#include "simd_loops.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t chunk_rows = 256;  // mutate: memory only; rows whose logits exist at the same time

// Computes the loss and its gradients chunk by chunk in the forward pass. The backward pass only multiplies
// them by the incoming gradient, which is a scalar.
class FastLinearCrossEntropy : public torch::autograd::Function<FastLinearCrossEntropy> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& hidden_given, const Tensor& weight,
                               const Tensor& labels, double smoothing, bool bfloat16, bool needs_d_hidden,
                               bool needs_d_weight) {
    RECORD_USER_SCOPE("loss");
    const Tensor hidden = hidden_given.contiguous();
    const int64_t rows = hidden.size(0), vocabulary = weight.size(0);
    const Tensor d_hidden = needs_d_hidden ? torch::empty_like(hidden) : Tensor();
    const Tensor d_weight = needs_d_weight ? torch::zeros_like(weight) : Tensor();
    const Tensor losses = torch::empty({rows, 2}, torch::kFloat64);
    Tensor logits = torch::empty({std::min(rows, chunk_rows), vocabulary}, hidden.options());
    const auto rounded = [bfloat16](const Tensor& x) { return bfloat16 ? x.to(torch::kBFloat16) : x; };
    const auto multiply = [bfloat16](Tensor& to, const Tensor& a, const Tensor& b) {
      if (bfloat16) {
        to.copy_(torch::mm(a, b));
      } else {
        torch::mm_out(to, a, b);
      }
    };
    const Tensor rounded_weight = rounded(weight);
    for (int64_t begin = 0; begin < rows; begin += chunk_rows) {
      const int64_t count = std::min(chunk_rows, rows - begin);
      Tensor part = logits.slice(0, 0, count);                           // [count, vocabulary]
      const Tensor hidden_part = hidden.slice(0, begin, begin + count);  // [count, width]
      const Tensor rounded_hidden = rounded(hidden_part);
      multiply(part, rounded_hidden, rounded_weight.t());
      float* values = part.mutable_data_ptr<float>();
      const int64_t* chunk_labels = labels.const_data_ptr<int64_t>() + begin;
      double* sums = losses.mutable_data_ptr<double>() + 2 * begin;
      at::parallel_for(0, count, 8, [&](int64_t first, int64_t last) {
        simd::cross_entropy_rows(values, chunk_labels, static_cast<float>(smoothing), vocabulary, sums, first,
                                 last);
      });
      const Tensor d_logits = rounded(part);
      if (needs_d_hidden) {
        Tensor d_part = d_hidden.slice(0, begin, begin + count);
        multiply(d_part, d_logits, rounded_weight);
      }
      if (needs_d_weight && bfloat16) d_weight.add_(torch::mm(d_logits.t(), rounded_hidden));
      if (needs_d_weight && !bfloat16) d_weight.addmm_(d_logits.t(), rounded_hidden);
    }
    const Tensor sums = losses.sum(0).to(torch::kFloat32);
    context->save_for_backward({d_hidden, d_weight});
    const Tensor smoothed = sums[0].clone(), plain = sums[1].clone();
    context->mark_non_differentiable({plain});
    return {smoothed, plain};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    RECORD_USER_SCOPE("loss");
    const variable_list saved = context->get_saved_variables();
    const Tensor& factor = gradients[0];
    const auto scaled = [&](const Tensor& x) { return x.defined() ? x * factor : Tensor(); };
    return {scaled(saved[0]), scaled(saved[1]), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

CrossEntropyLoss linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& labels,
                                      double smoothing, bool bfloat16) {
  if (!is_fast(hidden)) return reference::linear_cross_entropy(hidden, weight, labels, smoothing, bfloat16);
  const bool gradients = torch::GradMode::is_enabled();
  const variable_list losses = FastLinearCrossEntropy::apply(
      hidden, weight, labels, smoothing, bfloat16, gradients && hidden.requires_grad(),
      gradients && weight.requires_grad());  // a frozen weight needs no gradient
  return {losses[0], losses[1]};
}

CrossEntropyLoss reference::linear_cross_entropy(const Tensor& hidden, const Tensor& weight,
                                                 const Tensor& labels, double smoothing, bool bfloat16) {
  const Tensor logits =
      (bfloat16 ? reference::bfloat16_linear(hidden, weight, {}) : torch::linear(hidden, weight))
          .to(torch::kFloat32);  // [rows, vocabulary]
  const auto sum = at::Reduction::Sum;
  const Tensor plain = torch::cross_entropy_loss(logits.detach(), labels, {}, sum);
  return {torch::cross_entropy_loss(logits, labels, {}, sum, -100, smoothing), plain};
}

}  // namespace calque

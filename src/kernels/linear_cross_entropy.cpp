#include "calque/kernels/linear_cross_entropy.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <algorithm>

#include "calque/kernels/linear.h"
#include "calque/kernels/threads.h"
#include "fast.h"
#include "simd_loops.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows whose logits exist at the same time: few for the processor's cache, many for a device, where each
// operation has to be started.
int64_t chunk_rows(bool fast, int64_t vocabulary) {
  constexpr int64_t in_cache = 256, cells = 1 << 25;                         // mutate: memory only
  return fast ? in_cache : std::max<int64_t>(in_cache, cells / vocabulary);  // mutate: memory only
}

// logits: [rows, vocabulary], replaced by the gradient of the smoothed loss. sums: [rows, 2], receives both
// losses of each row.
void fast_rows(const Tensor& logits, const Tensor& labels, double smoothing, const Tensor& sums) {
  const int64_t vocabulary = logits.size(1);
  float* values = logits.mutable_data_ptr<float>();
  const int64_t* label = labels.const_data_ptr<int64_t>();
  double* to = sums.mutable_data_ptr<double>();
  parallel_rows(logits.size(0), 8, [&](int64_t first, int64_t last) {
    simd::cross_entropy_rows(values, label, static_cast<float>(smoothing), vocabulary, to, first, last);
  });
}

void portable_rows(const Tensor& logits, const Tensor& labels, double smoothing, const Tensor& sums) {
  const Tensor label = labels.unsqueeze(1);                         // [rows, 1]
  const Tensor log_sums = logits.logsumexp(1, /*keepdim=*/true);    // [rows, 1]
  const Tensor plain = log_sums - logits.gather(1, label);          // [rows, 1]
  const Tensor even = log_sums - logits.mean(1, /*keepdim=*/true);  // [rows, 1]
  sums.copy_(torch::cat({plain.lerp(even, smoothing), plain}, 1));
  logits.sub_(log_sums).exp_().sub_(smoothing / static_cast<double>(logits.size(1)));
  logits.scatter_add_(1, label, torch::full_like(plain, smoothing - 1));
}

// Computes the loss and its gradients chunk by chunk in the forward pass. The backward pass only multiplies
// them by the incoming gradient, which is a scalar.
class ChunkedCrossEntropy : public torch::autograd::Function<ChunkedCrossEntropy> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& hidden_given, const Tensor& weight,
                               const Tensor& labels, double smoothing, torch::Dtype products,
                               bool needs_d_hidden, bool needs_d_weight) {
    RECORD_USER_SCOPE("loss");
    const Tensor hidden = hidden_given.contiguous();
    const bool fast = is_fast(hidden);
    const int64_t rows = hidden.size(0), vocabulary = weight.size(0), chunk = chunk_rows(fast, vocabulary);
    const Tensor d_hidden = needs_d_hidden ? torch::empty_like(hidden) : Tensor();
    const Tensor d_weight = needs_d_weight ? torch::zeros_like(weight) : Tensor();
    const Tensor losses =
        torch::empty({rows, 2}, fast ? hidden.options().dtype(torch::kFloat64) : hidden.options());
    const Tensor logits = torch::empty({std::min(rows, chunk), vocabulary}, hidden.options());
    const Tensor rounded_weight = rounded(weight, products);
    for (int64_t begin = 0; begin < rows; begin += chunk) {
      const int64_t count = std::min(chunk, rows - begin);
      const Tensor part = logits.slice(0, 0, count);  // [count, vocabulary]
      const Tensor rounded_hidden =
          rounded(hidden.slice(0, begin, begin + count), products);  // [count, width]
      matrix_product_into(part, rounded_hidden, rounded_weight.t());
      (fast ? fast_rows : portable_rows)(part, labels.slice(0, begin, begin + count), smoothing,
                                         losses.slice(0, begin, begin + count));
      const Tensor d_logits = rounded(part, products);
      if (needs_d_hidden)
        matrix_product_into(d_hidden.slice(0, begin, begin + count), d_logits, rounded_weight);
      if (needs_d_weight) matrix_product_into(d_weight, d_logits.t(), rounded_hidden, /*add=*/true);
    }
    const Tensor sums = losses.sum(0).to(hidden.scalar_type());
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
                                      double smoothing, torch::Dtype products) {
  const bool gradients = torch::GradMode::is_enabled();
  const variable_list losses = ChunkedCrossEntropy::apply(
      hidden, weight, labels, smoothing, products, gradients && hidden.requires_grad(),
      gradients && weight.requires_grad());  // a frozen weight needs no gradient
  return {losses[0], losses[1]};
}

CrossEntropyLoss reference::linear_cross_entropy(const Tensor& hidden, const Tensor& weight,
                                                 const Tensor& labels, double smoothing,
                                                 torch::Dtype products) {
  const Tensor logits = products != torch::kFloat32 ? reference::linear(hidden, weight, {}, products)
                                                    : torch::linear(hidden, weight);  // [rows, vocabulary]
  const auto sum = at::Reduction::Sum;
  const Tensor plain = torch::cross_entropy_loss(logits.detach(), labels, {}, sum);
  constexpr int64_t ignored = -100;  // mutate: no label is negative
  return {torch::cross_entropy_loss(logits, labels, {}, sum, ignored, smoothing), plain};
}

}  // namespace calque

#include "calque/kernels/output_loss.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "calque/kernels/simd_loops.h"
#include "calque/kernels/trained_linear.h"
#include "fast.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t chunk_rows = 256;  // rows whose logits exist at one time

// Loss and gradients chunk by chunk in the forward pass: a sum's gradient is known up to the factor that
// comes back.
class FastOutputLoss : public torch::autograd::Function<FastOutputLoss> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& hidden_given, const Tensor& weight,
                               const Tensor& labels, double smoothing, bool half, bool wants_hidden,
                               bool wants_weight) {
    RECORD_USER_SCOPE("loss");
    const Tensor hidden = hidden_given.contiguous();
    const int64_t rows = hidden.size(0), vocabulary = weight.size(0);
    const Tensor d_hidden = wants_hidden ? torch::empty_like(hidden) : Tensor();
    const Tensor d_weight = wants_weight ? torch::zeros_like(weight) : Tensor();
    const Tensor losses = torch::empty({rows, 2}, torch::kFloat64);
    Tensor logits = torch::empty({std::min(rows, chunk_rows), vocabulary}, hidden.options());
    const auto rounded = [half](const Tensor& x) { return half ? x.to(torch::kBFloat16) : x; };
    const auto multiply = [half](Tensor& to, const Tensor& a, const Tensor& b) {
      if (half) {
        to.copy_(torch::mm(a, b));
      } else {
        torch::mm_out(to, a, b);
      }
    };
    const Tensor factors = rounded(weight);
    for (int64_t begin = 0; begin < rows; begin += chunk_rows) {
      const int64_t count = std::min(chunk_rows, rows - begin);
      Tensor part = logits.slice(0, 0, count);                           // [count, vocabulary]
      const Tensor hidden_part = hidden.slice(0, begin, begin + count);  // [count, width]
      const Tensor inputs = rounded(hidden_part);
      multiply(part, inputs, factors.t());
      float* values = part.mutable_data_ptr<float>();
      const int64_t* wanted = labels.const_data_ptr<int64_t>() + begin;
      double* sums = losses.mutable_data_ptr<double>() + 2 * begin;
      at::parallel_for(0, count, 8, [&](int64_t first, int64_t last) {
        simd::cross_entropy_rows(values, wanted, static_cast<float>(smoothing), vocabulary, sums, first,
                                 last);
      });
      const Tensor d_logits = rounded(part);
      if (wants_hidden) {
        Tensor d_part = d_hidden.slice(0, begin, begin + count);
        multiply(d_part, d_logits, factors);
      }
      if (wants_weight && half) d_weight.add_(torch::mm(d_logits.t(), inputs));
      if (wants_weight && !half) d_weight.addmm_(d_logits.t(), inputs);
    }
    const Tensor sums = losses.sum(0).to(torch::kFloat32);
    context->save_for_backward({d_hidden, d_weight});
    const Tensor smoothed = sums[0].clone(), plain = sums[1].clone();
    context->mark_non_differentiable({plain});
    return {smoothed, plain};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    RECORD_USER_SCOPE("loss");
    const variable_list kept = context->get_saved_variables();
    const Tensor& factor = gradients[0];
    const auto scaled = [&](const Tensor& x) { return x.defined() ? x * factor : Tensor(); };
    return {scaled(kept[0]), scaled(kept[1]), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

OutputLoss output_loss(const Tensor& hidden, const Tensor& weight, const Tensor& labels, double smoothing,
                       bool half) {
  if (!is_fast(hidden)) return reference::output_loss(hidden, weight, labels, smoothing, half);
  const bool gradients = torch::GradMode::is_enabled();
  const variable_list both =
      FastOutputLoss::apply(hidden, weight, labels, smoothing, half, gradients && hidden.requires_grad(),
                            gradients && weight.requires_grad());  // a frozen weight is not wanted
  return {both[0], both[1]};
}

OutputLoss reference::output_loss(const Tensor& hidden, const Tensor& weight, const Tensor& labels,
                                  double smoothing, bool half) {
  const Tensor logits =
      reference::trained_linear(hidden, weight, {}, half).to(torch::kFloat32);  // [rows, vocabulary]
  const auto sum = at::Reduction::Sum;
  const Tensor plain = torch::cross_entropy_loss(logits.detach(), labels, {}, sum);
  return {torch::cross_entropy_loss(logits, labels, {}, sum, -100, smoothing), plain};
}

}  // namespace calque

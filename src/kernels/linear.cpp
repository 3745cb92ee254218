#include "calque/kernels/linear.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <algorithm>

#include "avx512_product.h"
#include "calque/kernels/thread_pool.h"
#include "calque/kernels/threads.h"
#include "fast.h"

namespace calque {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Multiplications of a block: few, so that threads finish at the same time; many, so that they are fast. A
// side is not divided below the smallest one.
constexpr int64_t block_multiplications = 1 << 25, smallest_side = 128;  // mutate: speed only

struct Grid {
  int64_t rows, columns;  // of a block
};

// Halves the longer side of a block until it has few enough multiplications.
Grid divide(int64_t rows, int64_t inner, int64_t columns) {
  Grid block{rows, columns};
  while (block.rows * block.columns * inner > block_multiplications) {           // mutate: speed only
    int64_t& longer = block.rows >= block.columns ? block.rows : block.columns;  // mutate: speed only
    if (longer < 2 * smallest_side) break;                                       // mutate: speed only
    longer = (longer + 1) / 2;
  }
  return block;
}

void multiply_block(Tensor out, const Tensor& a, const Tensor& b, bool add) {
  const at::AutoDispatchBelowADInplaceOrView no_gradients;
  if (add) {
    out.addmm_(a, b);
  } else {
    at::mm_out(out, a, b);
  }
}

// LibTorch's own product, whose type is that of its operands.
void multiply_portably(Tensor out, const Tensor& a, const Tensor& b, bool add) {
  if (out.scalar_type() == a.scalar_type()) {
    multiply_block(out, a, b, add);
    return;
  }
  const at::AutoDispatchBelowADInplaceOrView no_gradients;
  const Tensor product = at::mm(a, b);
  add ? out.add_(product) : out.copy_(product);
}

}  // namespace

void matrix_product_into(const Tensor& out, const Tensor& a, const Tensor& b, bool add) {
  RECORD_USER_SCOPE("products");
  if (!is_fast(out)) {
    multiply_portably(out, a, b, add);
    return;
  }
  const int64_t rows = out.size(0), columns = out.size(1);
  if (rows == 0 || columns == 0) return;
  if (a.size(1) > 0 && prefers_avx512_product(a, b)) {
    avx512_product_into(out, a, b, add);
    return;
  }
  if (a.scalar_type() != torch::kFloat32) {  // without instructions for it, float32 is far faster
    matrix_product_into(out, rounded(a, torch::kFloat32), rounded(b, torch::kFloat32), add);
    return;
  }
  const Grid block = divide(rows, a.size(1), columns);
  const int64_t across = (columns + block.columns - 1) / block.columns;
  const auto run = [&](int64_t unit) {
    const at::AutoDispatchBelowADInplaceOrView no_gradients;  // a setting of each thread; for the slices too
    const int64_t row = unit / across * block.rows, column = unit % across * block.columns;
    multiply_block(out.slice(0, row, row + block.rows).slice(1, column, column + block.columns),
                   a.slice(0, row, row + block.rows), b.slice(1, column, column + block.columns), add);
  };
  const int64_t units = (rows + block.rows - 1) / block.rows * across;
  const int threads = num_threads();
  const SingleThreadedLibTorch single_threaded;  // also where there is one unit
  parallel_units(units, threads, run);
}

Tensor matrix_product(const Tensor& a, const Tensor& b) {
  const Tensor out = torch::empty({a.size(0), b.size(1)}, a.options().dtype(torch::kFloat32));
  matrix_product_into(out, a, b);
  return out;
}

Tensor rounded(const Tensor& x, torch::Dtype type) {
  if (x.scalar_type() == type || !x.is_cpu() || !x.is_contiguous()) return x.to(type);
  constexpr int64_t values_per_task = 1 << 15;  // mutate: speed only
  const Tensor out = torch::empty(x.sizes(), x.options().dtype(type));
  parallel_rows(x.numel(), values_per_task, [&](int64_t begin, int64_t end) {
    const at::AutoDispatchBelowADInplaceOrView no_gradients;  // a setting of each thread
    out.view(-1).slice(0, begin, end).copy_(x.view(-1).slice(0, begin, end));
  });
  return out;
}

namespace {

// In a type of lower precision, input and weight are rounded once per step: the backward pass reuses what the
// forward pass rounded.
class Linear : public torch::autograd::Function<Linear> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias, torch::Dtype type) {
    const Tensor rounded_x = rounded(x, type), rounded_weight = rounded(weight, type);
    context->save_for_backward({weight.requires_grad() ? rounded_x : Tensor(), rounded_weight});
    context->saved_data["bias"] = bias.has_value();
    const Tensor y = matrix_product(rounded_x, rounded_weight.t());
    return bias ? y.add_(*bias) : y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &dy = gradients[0], rounded_dy = rounded(dy, saved[1].scalar_type());
    const auto needed = [&](size_t input) { return context->needs_input_grad(input); };
    return {needed(0) ? matrix_product(rounded_dy, saved[1]) : Tensor(),
            needed(1) ? matrix_product(rounded_dy.t(), saved[0]) : Tensor(),
            context->saved_data["bias"].toBool() && needed(2) ? dy.sum(0) : Tensor(), Tensor()};
  }
};

class LowRank : public torch::autograd::Function<LowRank> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& y, const Tensor& x, const Tensor& down,
                        const Tensor& up, double scale) {
    const Tensor low = matrix_product(x, down.t()).mul_(scale);  // [rows, rank]
    matrix_product_into(y, low, up.t(), /*add=*/true);
    context->mark_dirty({y});
    context->save_for_backward({x, down, up, low});
    context->saved_data["scale"] = scale;
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &dy = gradients[0], &x = saved[0], &down = saved[1], &up = saved[2], &low = saved[3];
    const Tensor d_low =
        matrix_product(dy, up).mul_(context->saved_data["scale"].toDouble());  // [rows, rank]
    const auto needed = [&](size_t input) { return context->needs_input_grad(input); };
    return {dy, needed(1) ? matrix_product(d_low, down) : Tensor(),
            needed(2) ? matrix_product(d_low.t(), x) : Tensor(),
            needed(3) ? matrix_product(dy.t(), low) : Tensor(), Tensor()};
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, torch::Dtype type) {
  return Linear::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt, type);
}

Tensor add_low_rank(const Tensor& y, const Tensor& x, const Tensor& down, const Tensor& up, double scale) {
  return LowRank::apply(y, x, down, up, scale);
}

namespace {

// Rounds the value and lets the gradient pass.
Tensor round_value(const Tensor& x, torch::Dtype type) {
  return x + (x.to(type).to(x.scalar_type()) - x).detach();
}

// Rounds the gradient and lets the value pass.
Tensor round_gradient(const Tensor& x, torch::Dtype type) {
  const Tensor low = x.to(type).to(x.scalar_type());
  return low + (x - low).detach();
}

}  // namespace

Tensor reference::linear(const Tensor& x, const Tensor& weight, const Tensor& bias, torch::Dtype type) {
  const Tensor y = round_gradient(torch::linear(round_value(x, type), round_value(weight, type)), type);
  return bias.defined() ? y + bias : y;
}

Tensor reference::add_low_rank(const Tensor& y, const Tensor& x, const Tensor& down, const Tensor& up,
                               double scale) {
  return y + scale * torch::linear(torch::linear(x, down), up);
}

}  // namespace calque

#include "calque/train/orthogonalise.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "calque/kernels/linear.h"
#include "calque/kernels/thread_pool.h"
#include "calque/kernels/threads.h"

namespace calque {
namespace {

using torch::Tensor;

struct Polynomial {
  double a, b, c;
};

// Polynomials that move every singular value towards 1.
std::vector<Polynomial> polynomials(MuonMethod method) {
  if (method == MuonMethod::newton_schulz) return std::vector<Polynomial>(5, {3.4445, -4.7750, 2.0315});
  // Polar Express (Amsel et al., 2025): each minimises the largest distance from 1 over the interval that the
  // one before leaves, from [0.01, 1] to [0.73, 1.27].
  return {{8.093369, -23.62043, 17.446152}, {3.636586, -2.721927, 0.536546}, {2.6613, -1.977155, 0.452616}};
}

// Normalises S = X · Xᵀ in place, and returns the scale of each row of X that would do the same, [rows, 1].
// With 1 / ‖X‖ alone, most singular values are far below 1. So Polar Express also divides each row by √(Σ|S|)
// of its row of S, which leaves none above 1 and brings the largest near to it (AOL: Prach and Lampert, 2022;
// in Muon: Boissin et al., 2025). That saves an iteration.
Tensor scale_rows(const Tensor& squares, MuonMethod method) {
  const Tensor norm_squared = squares.diagonal().sum().clamp_min(1e-14);
  squares.div_(norm_squared);
  Tensor scale = torch::ones({squares.size(0), 1}, squares.options());
  if (method == MuonMethod::polar_express) {
    scale = squares.abs().sum(1, /*keepdim=*/true).clamp_min_(1e-20).rsqrt_();
    squares.mul_(scale).mul_(scale.t());
  }
  return scale.div_(norm_squared.sqrt());
}

// Narrower strips save operations and occupy more threads, but products of few rows are slow.
constexpr int64_t most_strips = 16, narrowest_strip = 128;  // mutate: speed only

// out = a · b, which the caller knows to be symmetric: strips of rows up to the diagonal, then mirrored.
void symmetric_product(const Tensor& out, const Tensor& a, const Tensor& b) {
  const int64_t rows = out.size(0);
  const int64_t height =
      std::max(narrowest_strip, (rows + most_strips - 1) / most_strips);  // mutate: speed only
  const int64_t strips = (rows + height - 1) / height;
  parallel_units(strips, num_threads(), [&](int64_t unit) {
    const SingleThreadedLibTorch single_threaded;
    const torch::NoGradGuard no_gradients;               // a setting of each thread
    const int64_t begin = (strips - 1 - unit) * height;  // the longest strip first
    const int64_t end = std::min(rows, begin + height);
    const Tensor strip = out.slice(0, begin, end).slice(1, 0, end);
    matrix_product_into(strip, a.slice(0, begin, end), b.slice(1, 0, end));
    if (begin > 0) out.slice(0, 0, begin).slice(1, begin, end).copy_(strip.slice(1, 0, begin).t());
  });
}

// out = a + b·S + c·S². The caller multiplies X, or its factor F, by it.
void evaluate(const Tensor& out, const Polynomial& p, const Tensor& squares, torch::Dtype precision) {
  const Tensor operand = rounded(squares, precision);
  symmetric_product(out, operand, operand);
  out.mul_(p.c).add_(squares, p.b).diagonal().add_(p.a);
}

// Every iteration X ← p(S) · X becomes F ← p(S) · F and S ← p(S)² · S.
OrthogonalFactor iterate_on_squares(const Tensor& x, MuonMethod method) {
  const int64_t rows = x.size(0);
  const Tensor polynomial = torch::empty({rows, rows}, x.options());
  Tensor squares = torch::empty_like(polynomial), product = torch::empty_like(polynomial), factor;
  symmetric_product(squares, x, x.t());
  const Tensor scale = scale_rows(squares, method);
  const std::vector<Polynomial> steps = polynomials(method);
  for (size_t i = 0; i < steps.size(); ++i) {
    evaluate(polynomial, steps[i], squares, torch::kFloat32);
    if (i == 0) {
      factor = polynomial.clone();
    } else {
      symmetric_product(product, polynomial, factor);
      std::swap(product, factor);
    }
    if (i + 1 == steps.size()) break;  // mutate: speed only
    symmetric_product(product, polynomial, squares);
    symmetric_product(squares, product, polynomial);
  }
  return {factor.mul_(scale.t()), x};
}

// All operands are rounded. To iterate on S instead would lose too much precision.
OrthogonalFactor iterate_on_matrix(Tensor x, MuonMethod method) {
  const torch::Dtype precision = x.scalar_type();
  const Tensor squares = torch::empty({x.size(0), x.size(0)}, x.options().dtype(torch::kFloat32));
  const Tensor polynomial = torch::empty_like(squares);
  const std::vector<Polynomial> steps = polynomials(method);
  for (size_t i = 0; i < steps.size(); ++i) {
    symmetric_product(squares, x, x.t());
    const Tensor scale = i == 0 ? scale_rows(squares, method) : Tensor();
    evaluate(polynomial, steps[i], squares, precision);
    if (scale.defined()) polynomial.mul_(scale.t());
    if (i + 1 == steps.size()) break;
    x = rounded(matrix_product(rounded(polynomial, precision), x), precision);
  }
  return {polynomial, x};
}

}  // namespace

void OrthogonalFactor::add_product(const Tensor& to, double scale) const {
  const torch::NoGradGuard no_gradients;
  const Tensor scaled = rounded(factor.mul(scale), matrix.scalar_type());
  if (to.stride(1) == 1) {
    matrix_product_into(to, scaled, matrix, /*add=*/true);
  } else {
    matrix_product_into(to.t(), matrix.t(), scaled.t(), /*add=*/true);
  }
}

OrthogonalFactor orthogonal_factor(const Tensor& matrix, MuonMethod method, torch::Dtype precision) {
  const torch::NoGradGuard no_gradients;
  return precision == torch::kFloat32 ? iterate_on_squares(matrix, method)
                                      : iterate_on_matrix(rounded(matrix, precision), method);
}

double orthogonalising_work(int64_t rows, int64_t columns) {
  const auto shorter = static_cast<double>(std::min(rows, columns));
  const auto longer = static_cast<double>(std::max(rows, columns));
  return shorter * shorter * (longer + 2 * shorter);
}

Tensor reference::orthogonalise(const Tensor& matrices, MuonMethod method, torch::Dtype precision) {
  Tensor x = (matrices / (matrices.norm(2, {1, 2}, true) + 1e-7)).to(precision);
  if (method == MuonMethod::polar_express) {
    const Tensor row_sums = torch::bmm(x, x.transpose(1, 2)).abs().sum(2, /*keepdim=*/true);
    x.mul_(row_sums.clamp_min(1e-20).rsqrt());
  }
  for (const Polynomial& p : polynomials(method)) {  // x ← a·x + b·x³ + c·x⁵, on the singular values
    const Tensor square = torch::bmm(x, x.transpose(1, 2));
    const Tensor factor = torch::baddbmm(square, square, square, p.b, p.c);
    x = torch::baddbmm(x, factor, x, p.a, 1);
  }
  return x;
}

}  // namespace calque

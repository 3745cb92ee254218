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

// Scales X, whose norm is 1, and its scalar products of rows, S = X · Xᵀ. Divided by the norm alone, most
// singular values are far below 1. So each row is divided by √(Σ|S|) of its row of S, which leaves none above
// 1 and brings the largest near to it (AOL: Prach and Lampert, 2022; in Muon: Boissin et al., 2025). That
// saves an iteration.
void precondition(Tensor& x, Tensor& squares, MuonMethod method) {
  if (method == MuonMethod::newton_schulz) return;
  const Tensor scale = squares.abs().sum(-1, /*keepdim=*/true).clamp_min(1e-20).rsqrt();  // [rows, 1]
  x.mul_(scale);
  squares.mul_(scale).mul_(scale.transpose(-2, -1));
}

// Narrower strips save operations, but products of few rows are slow.
constexpr int64_t strips = 4, narrowest_strip = 128;  // mutate: speed only

// out = a · b, which the caller knows to be symmetric: strips of rows up to the diagonal, then mirrored.
void symmetric_product(const Tensor& out, const Tensor& a, const Tensor& b) {
  const int64_t rows = out.size(0);
  const int64_t height = std::max(narrowest_strip, (rows + strips - 1) / strips);  // mutate: speed only
  parallel_rows(rows, height, [&](int64_t begin, int64_t end) {
    const SingleThreadedLibTorch single_threaded;
    const torch::NoGradGuard no_gradients;  // a setting of each thread
    Tensor strip = out.slice(0, begin, end).slice(1, 0, end);
    at::mm_out(strip, a.slice(0, begin, end), b.slice(1, 0, end));
    if (begin > 0) out.slice(0, 0, begin).slice(1, begin, end).copy_(strip.slice(1, 0, begin).t());
  });
}

}  // namespace

Tensor OrthogonalFactor::product() const { return torch::mm(factor, matrix); }

OrthogonalFactor orthogonal_factor(const Tensor& matrix, MuonMethod method) {
  const torch::NoGradGuard no_gradients;  // a setting of each thread
  Tensor x = matrix / (matrix.norm() + 1e-7);
  const int64_t rows = x.size(0);
  Tensor squares = torch::empty({rows, rows}, x.options());  // S
  Tensor factor, polynomial = torch::empty_like(squares), product = torch::empty_like(squares);
  symmetric_product(squares, x, x.t());
  precondition(x, squares, method);
  const std::vector<Polynomial> steps = polynomials(method);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Polynomial& p = steps[i];
    symmetric_product(polynomial, squares, squares);
    polynomial.mul_(p.c).add_(squares, p.b).diagonal().add_(p.a);
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
  return {factor, x};
}

Tensor orthogonalise_rounded(const Tensor& matrix, MuonMethod method) {
  const torch::NoGradGuard no_gradients;  // a setting of each thread
  const auto round = [](const Tensor& x) { return rounded(x, torch::kBFloat16); };
  const auto rows_products = [&](const Tensor& x) {
    const Tensor low = round(x);
    return matrix_product(low, low.t());
  };
  Tensor x = matrix / (matrix.norm() + 1e-7), squares = rows_products(x);
  precondition(x, squares, method);
  const std::vector<Polynomial> steps = polynomials(method);
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto [a, b, c] = steps[i];
    if (i > 0) squares = rows_products(x);
    const Tensor polynomial = rows_products(squares).mul_(c).add_(squares, b);  // squares are symmetric
    polynomial.diagonal().add_(a);
    x = matrix_product(round(polynomial), round(x));
  }
  return x;
}

double orthogonalising_work(int64_t rows, int64_t columns) {
  const auto shorter = static_cast<double>(std::min(rows, columns));
  const auto longer = static_cast<double>(std::max(rows, columns));
  return shorter * shorter * (longer + 2 * shorter);
}

Tensor reference::orthogonalise(const Tensor& matrices, MuonMethod method, torch::Dtype precision) {
  Tensor x = (matrices / (matrices.norm(2, {1, 2}, true) + 1e-7)).to(precision);
  Tensor square = torch::bmm(x, x.transpose(1, 2));
  precondition(x, square, method);
  for (const Polynomial& p : polynomials(method)) {  // x ← a·x + b·x³ + c·x⁵, on the singular values
    square = torch::bmm(x, x.transpose(1, 2));
    const Tensor factor = torch::baddbmm(square, square, square, p.b, p.c);
    x = torch::baddbmm(x, factor, x, p.a, 1);
  }
  return x;
}

}  // namespace calque

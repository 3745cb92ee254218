#include "calque/train/orthogonalise.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

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
  // one before leaves, from [0.003, 1] to [0.80, 1.20]. Five times the other leave [0.67, 1.21].
  return {{8.383677, -24.765929, 18.357101},
          {4.043446, -3.01143, 0.569517},
          {3.505629, -2.626697, 0.525724},
          {2.490188, -1.834338, 0.436842}};
}

// Narrower strips save operations, but products of few rows are slow.
constexpr int64_t strips = 4, narrowest_strip = 128;  // mutate: speed only

// out = a · b, which the caller knows to be symmetric: strips of rows up to the diagonal, then mirrored.
void symmetric_product(const Tensor& out, const Tensor& a, const Tensor& b) {
  const int64_t rows = out.size(0);
  const int64_t height = std::max(narrowest_strip, (rows + strips - 1) / strips);  // mutate: speed only
  for (int64_t begin = 0; begin < rows; begin += height) {
    const int64_t end = std::min(rows, begin + height);
    Tensor strip = out.slice(0, begin, end).slice(1, 0, end);
    at::mm_out(strip, a.slice(0, begin, end), b.slice(1, 0, end));
    if (begin > 0) out.slice(0, 0, begin).slice(1, begin, end).copy_(strip.slice(1, 0, begin).t());
  }
}

}  // namespace

Tensor OrthogonalFactor::product() const { return torch::mm(factor, matrix); }

OrthogonalFactor orthogonal_factor(const Tensor& matrix, MuonMethod method) {
  const torch::NoGradGuard no_gradients;  // a setting of each thread
  const Tensor x = matrix / (matrix.norm() + 1e-7);
  const int64_t rows = x.size(0);
  Tensor squares = torch::empty({rows, rows}, x.options());  // S
  Tensor factor, polynomial = torch::empty_like(squares), product = torch::empty_like(squares);
  symmetric_product(squares, x, x.t());
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

Tensor reference::orthogonalise(const Tensor& matrices, MuonMethod method, torch::Dtype precision) {
  Tensor x = (matrices / (matrices.norm(2, {1, 2}, true) + 1e-7)).to(precision);
  for (const Polynomial& p : polynomials(method)) {  // x ← a·x + b·x³ + c·x⁵, on the singular values
    const Tensor square = torch::bmm(x, x.transpose(1, 2));
    const Tensor factor = torch::baddbmm(square, square, square, p.b, p.c);
    x = torch::baddbmm(x, factor, x, p.a, 1);
  }
  return x;
}

}  // namespace calque

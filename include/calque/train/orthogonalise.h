// What Muon (Jordan et al., 2024) does to an update: it moves all singular values of a matrix towards 1.
#pragma once

#include <torch/types.h>

#include "calque/runs/train_config.h"

namespace calque {

// The nearest (semi-)orthogonal matrix of one matrix, approximately: factor · matrix.
struct OrthogonalFactor {
  torch::Tensor factor;  // [rows, rows], float32
  torch::Tensor matrix;  // [rows, columns], in the precision of the products

  // to += scale · factor · matrix. to: [rows, columns], float32; its rows or its columns are contiguous.
  void add_product(const torch::Tensor& to, double scale) const;
};

// matrix: float32, [rows, columns], rows ≤ columns. Operands of products are rounded to `precision`.
//
// In float32 all iterations work on the matrix of scalar products of the rows, S = X · Xᵀ, which is smaller
// than X. In bfloat16 that would lose too much, and they work on X. S and its polynomials are symmetric: only
// half of such a product is computed.
OrthogonalFactor orthogonal_factor(const torch::Tensor& matrix, MuonMethod method, torch::Dtype precision);

// How long a matrix takes, relative to others: between the two ways above, of which the first spends more on
// the shorter side and the second on the longer one.
double orthogonalising_work(int64_t rows, int64_t columns);

namespace reference {
// The iterations on the matrices themselves, with products in the given precision, which the result has too.
// matrices: [count, rows, columns], rows ≤ columns.
torch::Tensor orthogonalise(const torch::Tensor& matrices, MuonMethod method,
                            torch::Dtype precision = torch::kFloat32);
}  // namespace reference

}  // namespace calque

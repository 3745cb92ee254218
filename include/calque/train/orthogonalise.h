// What Muon (Jordan et al., 2024) does to an update: it moves all singular values of a matrix towards 1.
#pragma once

#include <torch/types.h>

#include "calque/runs/train_config.h"

namespace calque {

// The nearest (semi-)orthogonal matrix of one matrix, approximately: factor · matrix. The factor is
// symmetric.
struct OrthogonalFactor {
  torch::Tensor factor;  // [rows, rows]
  torch::Tensor matrix;  // [rows, columns], the one given, scaled

  torch::Tensor product() const;  // [rows, columns]
};

// matrix: float32, [rows, columns], rows ≤ columns.
//
// All iterations work on the matrix of scalar products of the rows, S = X · Xᵀ, which is smaller than X and
// symmetric, as are its polynomials: only half of each product is computed. Every iteration X ← p(S) · X
// becomes F ← p(S) · F and S ← p(S)² · S, and X is multiplied once, by F, at the end.
OrthogonalFactor orthogonal_factor(const torch::Tensor& matrix, MuonMethod method);

// The same by iterations on the matrix, whose products have operands in bfloat16. The products of the rows
// would lose too much by that.
torch::Tensor orthogonalise_rounded(const torch::Tensor& matrix, MuonMethod method);

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

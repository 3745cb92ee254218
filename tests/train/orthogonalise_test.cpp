#include "calque/train/orthogonalise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace calque {

TEST(Orthogonalise, TheResultIsNearlyOrthogonal) {
  at::manual_seed(1);
  for (const MuonMethod method : {MuonMethod::polar_express, MuonMethod::newton_schulz}) {
    for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{{16, 16}, {16, 48}}) {
      const auto matrices = torch::randn({3, rows, columns});
      const auto orthogonal = reference::orthogonalise(matrices, method);
      // Each by itself, not by its neighbours.
      EXPECT_LT((orthogonal[1] - reference::orthogonalise(matrices.slice(0, 1, 2), method)[0])
                    .abs()
                    .max()
                    .item<double>(),
                1e-4);
      const auto singular = std::get<1>(at::linalg_svd(orthogonal, false));
      EXPECT_GT(singular.min().item<double>(), 0.5);
      EXPECT_LT(singular.max().item<double>(), 1.3);
      const auto rounded = reference::orthogonalise(matrices, method, torch::kBFloat16);
      EXPECT_EQ(rounded.scalar_type(), torch::kBFloat16);
      EXPECT_LT((rounded.to(torch::kFloat32) - orthogonal).norm().item<double>(),
                0.1 * orthogonal.norm().item<double>());
    }
  }
}

TEST(Orthogonalise, TheFactorOfTheRowsProductsGivesWhatTheIterationsOnTheMatrixGive) {
  at::manual_seed(3);
  for (const MuonMethod method : {MuonMethod::polar_express, MuonMethod::newton_schulz}) {
    for (const auto& [rows, columns] :
         std::vector<std::pair<int, int>>{{1, 5}, {40, 40}, {150, 160}, {200, 600}}) {
      // Of low rank too, as gradients are: most singular values are as good as zero.
      for (const int rank : {rows, 1 + rows / 20}) {
        const auto matrix = torch::randn({rows, rank}).mm(torch::randn({rank, columns}));
        const auto wanted = reference::orthogonalise(matrix.unsqueeze(0), method)[0];
        EXPECT_LT((orthogonal_factor(matrix, method).product() - wanted).abs().max().item<double>(), 2e-3)
            << rows << " × " << columns << ", rank " << rank;
      }
    }
  }
}

// Singular values from 0.003 to 1 of the largest, which is what the coefficients were made for.
TEST(Orthogonalise, PolarExpressEndsWithinAFifthOfOne) {
  // The norm of the whole divides first: so that nothing but the polynomials acts, the values have norm 1.
  for (const double value : {0.003, 0.01, 0.05, 0.2, 0.5, 0.8}) {
    const auto other = torch::tensor(std::sqrt(1 - value * value));
    const auto x =
        torch::diag(torch::stack({torch::tensor(static_cast<float>(value)), other.to(torch::kFloat32)}))
            .unsqueeze(0);
    const auto y = reference::orthogonalise(x, MuonMethod::polar_express);
    EXPECT_NEAR(y[0][0][0].item<double>(), 1, 0.2) << value;
    EXPECT_NEAR(y[0][1][1].item<double>(), 1, 0.2) << value;
  }
}

}  // namespace calque

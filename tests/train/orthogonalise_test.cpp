#include "calque/train/orthogonalise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace calque {
namespace {

torch::Tensor orthogonalised(const torch::Tensor& matrix, MuonMethod method, torch::Dtype precision) {
  const auto result = torch::zeros_like(matrix);
  orthogonal_factor(matrix, method, precision).add_product(result, 1);
  return result;
}

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
        EXPECT_LT((orthogonalised(matrix, method, torch::kFloat32) - wanted).abs().max().item<double>(), 2e-3)
            << rows << " × " << columns << ", rank " << rank;
      }
    }
  }
}

// What the coefficients were made for: singular values down to a hundredth of the largest.
TEST(Orthogonalise, PolarExpressEndsWithinAQuarterOfOneOrSo) {
  at::manual_seed(4);
  for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{{24, 24}, {24, 60}}) {
    const auto values = torch::logspace(-1.3, 0, rows);
    const auto left = std::get<0>(at::linalg_qr(torch::randn({rows, rows})));
    const auto right = std::get<0>(at::linalg_qr(torch::randn({columns, columns}))).slice(0, 0, rows);
    const auto matrix = left.mul(values).mm(right);
    for (const auto& result : {orthogonalised(matrix, MuonMethod::polar_express, torch::kFloat32),
                               orthogonalised(matrix, MuonMethod::polar_express, torch::kBFloat16),
                               reference::orthogonalise(matrix.unsqueeze(0), MuonMethod::polar_express)[0]}) {
      const auto singular = std::get<1>(at::linalg_svd(result, false));
      EXPECT_GT(singular.min().item<double>(), 0.7);
      EXPECT_LT(singular.max().item<double>(), 1.3);
    }
  }
}

TEST(Orthogonalise, RoundedItIsNearTheReferenceAndAZeroMatrixStaysZero) {
  at::manual_seed(5);
  for (const MuonMethod method : {MuonMethod::polar_express, MuonMethod::newton_schulz}) {
    for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{{30, 70}, {40, 40}, {65, 200}}) {
      const auto matrix = torch::randn({rows, columns}) * 1e-3;
      const auto wanted = reference::orthogonalise(matrix.unsqueeze(0), method)[0];
      EXPECT_LT((orthogonalised(matrix, method, torch::kBFloat16) - wanted).norm().item<double>(),
                0.05 * wanted.norm().item<double>())
          << rows << " × " << columns;
    }
    const auto zero = torch::zeros({3, 4});
    for (const auto precision : {torch::kFloat32, torch::kBFloat16})
      EXPECT_TRUE(orthogonalised(zero, method, precision).equal(zero));
  }
}

// The momentum of a matrix that gets no gradient any more becomes as small as that.
TEST(Orthogonalise, TinyUpdatesStaySmall) {
  at::manual_seed(7);
  for (const MuonMethod method : {MuonMethod::polar_express, MuonMethod::newton_schulz}) {
    for (const double size : {1e-6, 1e-10, 1e-15, 1e-20, 1e-23, 1e-30, 1e-40}) {
      for (const auto precision : {torch::kFloat32, torch::kBFloat16}) {
        const auto result = orthogonalised(torch::randn({16, 32}) * size, method, precision);
        EXPECT_LT(result.abs().max().item<double>(), 2) << size;  // NaN neither
      }
    }
  }
}

// A parameter may have more rows than columns, or be part of a larger one.
TEST(Orthogonalise, TheProductIsAddedToTransposedMatricesToo) {
  at::manual_seed(6);
  const auto matrix = torch::randn({40, 90}), start = torch::randn({90, 50});
  for (const auto precision : {torch::kFloat32, torch::kBFloat16}) {
    const auto wanted = orthogonalised(matrix, MuonMethod::polar_express, precision);
    const auto whole = start.clone(), tall = whole.slice(1, 5, 45);  // [90, 40]
    orthogonal_factor(matrix, MuonMethod::polar_express, precision).add_product(tall.t(), -0.5);
    EXPECT_LT((tall.t() - (start.slice(1, 5, 45).t() - 0.5 * wanted)).abs().max().item<double>(), 1e-5);
    EXPECT_TRUE(whole.slice(1, 45).equal(start.slice(1, 45)));
  }
}

}  // namespace
}  // namespace calque

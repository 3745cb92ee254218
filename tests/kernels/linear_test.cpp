#include "calque/kernels/linear.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "../../src/kernels/avx512_product.h"
#include "calque/kernels/threads.h"
#include "kernels/compare.h"

namespace calque {
namespace {

void expect_close_unless_empty(const torch::Tensor& found, const torch::Tensor& expected, double tolerance) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  if (expected.numel() > 0) expect_close(found, expected, tolerance, "product");
}

}  // namespace

// Sizes that blocks divide evenly, unevenly and not at all.
TEST(MatrixProduct, IsThatOfLibTorchWhateverTheBlocks) {
  at::manual_seed(13);
  for (const auto& [rows, inner, columns] : std::vector<std::array<int64_t, 3>>{{0, 4, 5},
                                                                                {1, 7, 3},
                                                                                {5, 0, 4},
                                                                                {300, 20, 40},
                                                                                {700, 900, 333},
                                                                                {130, 5000, 129},
                                                                                {4000, 130, 129}}) {
    const auto a = torch::randn({rows, inner}), b = torch::randn({inner, columns}),
               start = torch::randn({rows, columns});
    const auto expected = torch::mm(a, b);
    const double tolerance = 1e-5 * std::sqrt(static_cast<double>(inner + 1));
    expect_close_unless_empty(matrix_product(a, b), expected, tolerance);
    // Operands that lie transposed in memory.
    expect_close_unless_empty(matrix_product(a.t().contiguous().t(), b.t().contiguous().t()), expected,
                              tolerance);
    const auto out = start.clone();
    matrix_product_into(out, a, b, /*add=*/true);
    expect_close_unless_empty(out, start + expected, tolerance);
  }
}

// Operands in rows or transposed, of odd sizes and with gaps between rows: the sum of exact products of
// (rounded) numbers, whichever way it is computed on this processor.
TEST(MatrixProduct, HasSumsInFloat32WhereverTheOperandsLie) {
  at::manual_seed(16);
  for (const auto type : {torch::kFloat32, torch::kBFloat16, torch::kFloat16}) {
    for (const auto& [rows, inner, columns] : std::vector<std::array<int64_t, 3>>{{0, 4, 5},
                                                                                  {5, 0, 4},
                                                                                  {1, 1, 1},
                                                                                  {1, 6, 3},
                                                                                  {13, 7, 33},
                                                                                  {49, 400, 31},
                                                                                  {300, 385, 70},
                                                                                  {700, 900, 333}}) {
      const auto a = torch::randn({rows, inner + 3}).slice(1, 0, inner).to(type),
                 b = torch::randn({inner, columns}).to(type), start = torch::randn({rows, columns});
      const auto wide = torch::cat({a, a.slice(1, 0, 1)}, 1);  // rows of other length
      const auto expected = torch::mm(a.to(torch::kFloat32), b.to(torch::kFloat32));
      const double tolerance = 1e-6 * std::sqrt(static_cast<double>(inner + 1));
      for (const auto& left : {a, wide.slice(1, 0, inner), a.t().contiguous().t()}) {
        for (const auto& right : {b, b.t().contiguous().t()}) {
          const auto found = matrix_product(left, right);
          EXPECT_EQ(found.scalar_type(), torch::kFloat32);
          expect_close_unless_empty(found, expected, tolerance);
        }
      }
      const auto out = torch::cat({start, start}, 1);
      matrix_product_into(out.slice(1, 0, columns), a, b, /*add=*/true);
      expect_close_unless_empty(out.slice(1, 0, columns), start + expected, tolerance);
      EXPECT_TRUE(out.slice(1, columns).equal(start));  // nothing is written beside it
    }
  }
}

// Also where LibTorch's own product is preferred.
TEST(Avx512Product, IsThatOfLibTorch) {
  if (!has_avx512()) GTEST_SKIP() << "this processor has no AVX-512";
  at::manual_seed(18);
  for (const auto& [rows, inner, columns] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {13, 7, 33}, {49, 600, 31}, {700, 900, 333}}) {
    const auto a = torch::randn({rows, inner}), b = torch::randn({inner, columns}),
               start = torch::randn({rows, columns});
    const auto expected = torch::mm(a, b);
    const double tolerance = 1e-6 * std::sqrt(static_cast<double>(inner + 1));
    for (const auto& left : {a, a.t().contiguous().t()}) {
      for (const auto& right : {b, b.t().contiguous().t()}) {
        const auto out = torch::cat({start, start}, 1);
        avx512_product_into(out.slice(1, 0, columns), left, right, /*add=*/false);
        expect_close(out.slice(1, 0, columns), expected, tolerance, "product");
        EXPECT_TRUE(out.slice(1, columns).equal(start));  // nothing is written beside it
        avx512_product_into(out.slice(1, 0, columns), left, right, /*add=*/true);
        expect_close(out.slice(1, 0, columns), 2 * expected, 2 * tolerance, "sum");
      }
    }
  }
}

TEST(MatrixProduct, HasTheSameBitsForAnyNumberOfThreads) {
  at::manual_seed(17);
  const int threads = num_threads();
  for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
    const auto a = torch::randn({1500, 301}).to(type), b = torch::randn({301, 270}).to(type);
    set_num_threads(1);
    const auto alone = matrix_product(a, b), transposed = matrix_product(b.t(), a.t());
    for (const int several : {2, 3, 5}) {
      set_num_threads(several);
      EXPECT_TRUE(matrix_product(a, b).equal(alone)) << several;
      EXPECT_TRUE(matrix_product(b.t(), a.t()).equal(transposed)) << several;
    }
  }
  set_num_threads(threads);
}

TEST(Linear, InFloat32ValuesAndGradientsMatchTheReference) {
  at::manual_seed(14);
  const auto x = torch::randn({700, 130}), weight = torch::randn({333, 130}), bias = torch::randn({333});
  expect_same(
      {x, weight, bias}, [](const auto& in) { return calque::linear(in[0], in[1], in[2]); },
      [](const auto& in) { return reference::linear(in[0], in[1], in[2]); }, 1e-5);
  expect_same(
      {x, weight}, [](const auto& in) { return calque::linear(in[0], in[1]); },
      [](const auto& in) { return reference::linear(in[0], in[1]); }, 1e-5);
}

TEST(Linear, ALowRankProductThatIsAddedMatchesTheReference) {
  at::manual_seed(15);
  const auto y = torch::randn({70, 50}), x = torch::randn({70, 30}), down = torch::randn({4, 30}),
             up = torch::randn({50, 4});
  const auto times_one = [](const torch::Tensor& leaf) { return leaf * 1; };  // a leaf cannot be overwritten
  expect_same(
      {y, x, down, up},
      [&](const auto& in) { return add_low_rank(times_one(in[0]), in[1], in[2], in[3], 0.7); },
      [](const auto& in) { return reference::add_low_rank(in[0], in[1], in[2], in[3], 0.7); }, 1e-5);
}

TEST(Linear, ValuesAndGradientsMatchTheReference) {
  at::manual_seed(12);
  const auto x = torch::randn({70, 33}), weight = torch::randn({40, 33}), bias = torch::randn({40});
  for (const auto type : {torch::kBFloat16, torch::kFloat16}) {
    expect_same(
        {x, weight, bias}, [&](const auto& in) { return linear(in[0], in[1], in[2], type); },
        [&](const auto& in) { return reference::linear(in[0], in[1], in[2], type); }, 1e-5);
    const auto exact = torch::linear(x, weight, bias), rounded = linear(x, weight, bias, type);
    const double unit = type == torch::kBFloat16 ? 2e-2 : 2e-3;
    expect_close(rounded, exact, unit, "output");
    EXPECT_GT(worst_difference(rounded, exact), unit / 200);
  }
}

TEST(Linear, AFrozenWeightGetsNoGradient) {
  at::manual_seed(10);
  const auto weight = torch::randn({40, 20}), bias = torch::randn({40});
  const auto x = torch::randn({30, 20}).set_requires_grad(true);
  linear(x, weight, bias, torch::kBFloat16).sum().backward();
  EXPECT_FALSE(weight.grad().defined());
  expect_close(x.grad(), weight.sum(0).expand({30, 20}), 2e-2, "gradient");
}

}  // namespace calque

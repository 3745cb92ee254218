#include "calque/kernels/packed_matrix.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "kernels/compare.h"

namespace calque {
namespace {

torch::Tensor product(const PackedMatrix& matrix, const torch::Tensor& x, const torch::Tensor& start = {}) {
  const torch::Tensor y = start.defined() ? start.clone() : torch::full({x.size(0), matrix.outputs()}, 77.0F);
  matrix.multiply(x.const_data_ptr<float>(), x.size(0), y.mutable_data_ptr<float>(), start.defined());
  return y;
}

// What the packed weights stand for.
torch::Tensor as_packed(const torch::Tensor& weight, Packing packing) {
  if (packing == Packing::float32) return weight;
  if (packing == Packing::bfloat16) return weight.to(torch::kBFloat16).to(torch::kFloat32);
  const auto scales = weight.abs().amax(1, true) / 127;
  return (weight / scales).round() * scales;
}

}  // namespace

class PackedMatrixOf : public testing::TestWithParam<Packing> {};
INSTANTIATE_TEST_SUITE_P(Packings, PackedMatrixOf,
                         testing::Values(Packing::float32, Packing::bfloat16, Packing::int8));

TEST_P(PackedMatrixOf, EqualsThePlainProductOfItsRoundedWeights) {
  at::manual_seed(3);
  const double tolerance = GetParam() == Packing::int8 ? 3e-4 : 1e-5;  // int8 rounds the rows too
  for (const auto& [outputs, inputs] : {std::pair{16, 8}, {48, 33}, {5, 1}, {131, 256}, {640, 3001}}) {
    const auto weight = torch::randn({outputs, inputs}), bias = torch::randn({outputs});
    const PackedMatrix with_bias(weight, bias, GetParam()), without(weight, {}, GetParam());
    for (const int64_t rows : {1, 2, 6, 7, 13, 40}) {
      const auto x = torch::randn({rows, inputs}), start = torch::randn({rows, outputs});
      const auto plain = torch::linear(x, as_packed(weight, GetParam()));
      expect_close(product(without, x), plain, tolerance, "product");
      expect_close(product(with_bias, x), plain + bias, tolerance, "with bias");
      expect_close(product(with_bias, x, start), start + plain + bias, tolerance, "added");
    }
  }
}

TEST_P(PackedMatrixOf, ARowIsTheSameToTheBitInAnyCompany) {
  at::manual_seed(4);
  const PackedMatrix matrix(torch::randn({4000, 512}), {}, GetParam());  // large enough for several threads
  const auto x = torch::randn({25, 512});
  const auto together = product(matrix, x);
  const int threads = at::get_num_threads();
  for (const int count : {1, 3}) {
    at::set_num_threads(count);
    for (const int64_t row : {0, 7, 24})
      EXPECT_TRUE(torch::equal(product(matrix, x.slice(0, row, row + 1)), together.slice(0, row, row + 1)));
    EXPECT_TRUE(torch::equal(product(matrix, x.slice(0, 3, 12)), together.slice(0, 3, 12)));
  }
  at::set_num_threads(threads);
}

TEST(PackedMatrix, RowsAndWeightsOfZerosGiveTheBias) {
  const auto bias = torch::arange(20, torch::kFloat32);
  for (const Packing packing : {Packing::float32, Packing::bfloat16, Packing::int8}) {
    const PackedMatrix zero(torch::zeros({20, 10}), bias, packing);
    EXPECT_TRUE(torch::equal(product(zero, torch::ones({1, 10})).squeeze(0), bias));
    const PackedMatrix one(torch::ones({20, 10}), bias, packing);
    EXPECT_TRUE(torch::equal(product(one, torch::zeros({1, 10})).squeeze(0), bias));
  }
}

TEST(PackedMatrix, TakesHalfAndAQuarterOfTheMemory) {
  const auto weight = torch::randn({64, 256});
  EXPECT_EQ(PackedMatrix(weight, {}, Packing::float32).bytes(), 64 * 256 * 4);
  EXPECT_EQ(PackedMatrix(weight, {}, Packing::bfloat16).bytes(), 64 * 256 * 2);
  EXPECT_EQ(PackedMatrix(weight, {}, Packing::int8).bytes(), 64 * 256 + 64 * 4);
}

}  // namespace calque

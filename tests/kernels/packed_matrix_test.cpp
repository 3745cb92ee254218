#include "calque/kernels/packed_matrix.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "kernels/compare.h"

namespace calque {
namespace {

torch::Tensor product(const PackedMatrix& matrix, const torch::Tensor& x) {
  const torch::Tensor y = torch::full({x.size(0), matrix.outputs()}, 77.0F);
  matrix.multiply(x.const_data_ptr<float>(), x.size(0), y.mutable_data_ptr<float>());
  return y;
}

// The weights with the rounding of `precision`.
torch::Tensor rounded_to(const torch::Tensor& weight, WeightPrecision precision) {
  if (precision == WeightPrecision::float32) return weight;
  if (precision == WeightPrecision::bfloat16) return weight.to(torch::kBFloat16).to(torch::kFloat32);
  const auto scales = weight.abs().amax(1, true) / 127;
  return (weight / scales).round() * scales;
}

}  // namespace

class PackedMatrixPrecision : public testing::TestWithParam<WeightPrecision> {};
INSTANTIATE_TEST_SUITE_P(Precisions, PackedMatrixPrecision,
                         testing::Values(WeightPrecision::float32, WeightPrecision::bfloat16,
                                         WeightPrecision::int8));

TEST_P(PackedMatrixPrecision, MatchesTheProductWithRoundedWeights) {
  at::manual_seed(3);
  const double tolerance = GetParam() == WeightPrecision::int8 ? 3e-4 : 1e-5;  // int8 also rounds the inputs
  for (const auto& [outputs, inputs] : {std::pair{16, 8}, {48, 33}, {5, 1}, {131, 256}, {640, 3001}}) {
    const auto weight = torch::randn({outputs, inputs}), bias = torch::randn({outputs});
    const PackedMatrix with_bias(weight, bias, GetParam()), without(weight, {}, GetParam());
    expect_close(without.unpacked(), rounded_to(weight, GetParam()), 1e-6, "unpacked");
    for (const int64_t rows : {1, 2, 6, 7, 13, 40}) {
      const auto x = torch::randn({rows, inputs});
      const auto plain = torch::linear(x, rounded_to(weight, GetParam()));
      expect_close(product(without, x), plain, tolerance, "product");
      expect_close(product(with_bias, x), plain + bias, tolerance, "with bias");
    }
  }
}

TEST_P(PackedMatrixPrecision, RowsAreBitIdenticalForAnyBatchAndThreadCount) {
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

TEST(PackedMatrix, ZeroInputsOrWeightsGiveTheBias) {
  const auto bias = torch::arange(20, torch::kFloat32);
  for (const WeightPrecision precision :
       {WeightPrecision::float32, WeightPrecision::bfloat16, WeightPrecision::int8}) {
    const PackedMatrix zero(torch::zeros({20, 10}), bias, precision);
    EXPECT_TRUE(torch::equal(product(zero, torch::ones({1, 10})).squeeze(0), bias));
    const PackedMatrix one(torch::ones({20, 10}), bias, precision);
    EXPECT_TRUE(torch::equal(product(one, torch::zeros({1, 10})).squeeze(0), bias));
  }
}

TEST(PackedMatrix, RowsReturnsTheWeights) {
  const auto weight = torch::randn({37, 9});
  const auto indices = torch::tensor({0, 36, 15, 16, 0}, torch::kInt64);
  const PackedMatrix packed(weight, {}, WeightPrecision::float32);
  EXPECT_TRUE(torch::equal(packed.rows(indices), weight.index_select(0, indices)));
  EXPECT_ANY_THROW(packed.rows(torch::tensor({37}, torch::kInt64)));
}

TEST(PackedMatrix, Bfloat16TakesHalfAndInt8AQuarterOfTheMemory) {
  const auto weight = torch::randn({64, 256});
  EXPECT_EQ(PackedMatrix(weight, {}, WeightPrecision::float32).bytes(), 64 * 256 * 4);
  EXPECT_EQ(PackedMatrix(weight, {}, WeightPrecision::bfloat16).bytes(), 64 * 256 * 2);
  EXPECT_EQ(PackedMatrix(weight, {}, WeightPrecision::int8).bytes(), 64 * 256 + 64 * 4);
}

}  // namespace calque

#include "calque/kernels/sum_of_products.h"

#include <gtest/gtest.h>

#include "calque/kernels/threads.h"

namespace calque {

TEST(SumOfProducts, IsExactWithTheSameBitsForAnyNumberOfThreads) {
  at::manual_seed(6);
  const int before = num_threads();
  for (const int64_t rows : {0, 1, 300, 4000}) {
    const auto a = torch::randn({rows, 40}), b = torch::randn({40, rows}).t();
    const double expected = (a.to(torch::kFloat64) * b.to(torch::kFloat64)).sum().item<double>();
    double first = 0;
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      const double found = sum_of_products(a, b);
      EXPECT_NEAR(found, expected, 1e-5 * static_cast<double>(1 + 40 * rows)) << rows;
      if (threads == 1) first = found;
      EXPECT_EQ(found, first) << rows << ", " << threads;
    }
  }
  set_num_threads(before);
}

}  // namespace calque

#include "calque/data/permutation.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace calque {

TEST(Permutation, ContainsEveryNumberOnce) {
  for (const int64_t size : {1, 2, 3, 5, 16, 17, 1000, 4097}) {
    const Permutation order(size, 7);
    std::set<int64_t> seen;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t value = order(i);
      EXPECT_GE(value, 0);
      EXPECT_LT(value, size);
      seen.insert(value);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
  }
}

TEST(Permutation, DependsOnlyOnItsKey) {
  const Permutation a(1000, 1), again(1000, 1), b(1000, 2);
  int same = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(a(i), again(i));
    same += a(i) == b(i);
  }
  EXPECT_LT(same, 10);  // about 1 is expected by chance
}

// From a Python port. Another order would change the batches of runs that are resumed.
TEST(Permutation, KeepsTheOrderOfEarlierVersions) {
  const std::vector<int64_t> ten = {3, 1, 9, 6, 5, 2, 0, 8, 7, 4}, thousand = {154, 446, 647, 829, 893, 491};
  for (size_t i = 0; i < ten.size(); ++i) EXPECT_EQ(Permutation(10, 7)(static_cast<int64_t>(i)), ten[i]);
  for (size_t i = 0; i < thousand.size(); ++i)
    EXPECT_EQ(Permutation(1000, 7)(static_cast<int64_t>(i)), thousand[i]);
}

TEST(Permutation, LooksRandom) {
  // A chi-squared test of the first element over many keys: 8 cells, 7 degrees of freedom, 0.1 % level.
  std::vector<int> cells(8);
  for (uint64_t key = 0; key < 8000; ++key) ++cells[Permutation(8, key)(0)];
  double chi_squared = 0;
  for (const int cell : cells) chi_squared += (cell - 1000.0) * (cell - 1000.0) / 1000.0;
  EXPECT_LT(chi_squared, 24.3);
}

}  // namespace calque

#include "calque/train/matrix_speed.h"

#include <gtest/gtest.h>

#include "calque/train/part_times.h"
#include "tiny_model.h"

namespace calque {

TEST(MatrixSpeed, ItsMeanIsAtMostItsBestAndNobodyElseCountsItsTime) {
  ModelConfig config = tiny_config();
  config.hidden_size = 64;
  const PartTimes parts;
  MatrixSpeed speed(config, 256);
  for (int i = 0; i < 3; ++i) speed.sample();
  EXPECT_GT(speed.mean(), 0);
  EXPECT_LE(speed.mean(), speed.best() * (1 + 1e-9));
  EXPECT_GT(speed.seconds(), 0);
  const auto seconds = parts.seconds();
  const auto products = seconds.find("products");
  EXPECT_EQ(products == seconds.end() ? 0 : products->second, 0);
}

}  // namespace calque

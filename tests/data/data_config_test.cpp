#include "calque/data/data_config.h"

#include <gtest/gtest.h>

#include "calque/base/config.h"
#include "field_bounds.h"

namespace calque {

TEST(DataConfig, NumbersHaveTheirLimits) {
  DataConfig config;
  expect_bounds(fields(config), {{"max_tokens", "2", "1"}, {"shards", "1", "0"}});
  CorpusPart part;
  expect_bounds(fields(part), {{"columns", "[1, 2]", "[0, 2]"},
                               {"columns", "[1, 1000]", "[1, 1001]"},
                               {"first", "0", "-1"},
                               {"weight", "0.001", "0.0009"},
                               {"weight", "1000", "1000.1"}});
}

TEST(DataConfig, DefaultsAreTheDocumentedOnes) {
  DataConfig config;
  EXPECT_EQ(config.max_tokens, 256);
  const CorpusPart part;
  EXPECT_EQ(part.weight, 1);
  EXPECT_EQ(part.first, 0);
  read_config_text(fields(config), "{train: a.tsv, valid: [b.tsv, {text: c.txt, first: 3}]}", "c.yaml", "/x",
                   {});
  ASSERT_EQ(config.train.size(), 1U);
  EXPECT_EQ(config.train[0].pairs, "/x/a.tsv");  // a path alone is a TSV of pairs
  ASSERT_EQ(config.valid.size(), 2U);
  EXPECT_EQ(config.valid[1].text, "/x/c.txt");
  EXPECT_EQ(config.valid[1].first, 3);
  EXPECT_TRUE(config.test.empty());
}

}  // namespace calque

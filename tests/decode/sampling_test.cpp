#include "calque/decode/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace calque {
namespace {

const std::vector<double> logits = {std::log(0.1), std::log(0.5), -INFINITY, std::log(0.3), std::log(0.1)};

std::map<size_t, double> shares(const DecodeConfig& config, uint64_t count = 4000) {
  std::map<size_t, double> drawn;
  for (uint64_t seed = 0; seed < count; ++seed)
    drawn[draw_token(logits, config, seed)] += 1 / static_cast<double>(count);
  return drawn;
}

}  // namespace

TEST(Sampling, FollowsTheProbabilities) {
  const auto drawn = shares({});
  EXPECT_NEAR(drawn.at(0), 0.1, 0.03);
  EXPECT_NEAR(drawn.at(1), 0.5, 0.03);
  EXPECT_NEAR(drawn.at(3), 0.3, 0.03);
  EXPECT_EQ(drawn.count(2), 0U);
  EXPECT_EQ(draw_token(logits, {}, 7), draw_token(logits, {}, 7));
}

TEST(Sampling, TemperatureSharpensTopKAndTopPCutOff) {
  DecodeConfig config;
  config.temperature = 0.5;  // squares them: 0.25 of 0.25 + 0.09 + 0.01 + 0.01
  EXPECT_NEAR(shares(config).at(1), 0.25 / 0.36, 0.03);
  config = {};
  config.top_k = 2;
  EXPECT_NEAR(shares(config).at(1), 0.5 / 0.8, 0.03);
  EXPECT_EQ(shares(config).size(), 2U);
  config = {};
  config.top_p = 0.7;  // 0.5 alone is too little, 0.8 is enough
  EXPECT_NEAR(shares(config).at(3), 0.3 / 0.8, 0.03);
  EXPECT_EQ(shares(config).size(), 2U);
  config.top_p = 0.1;
  EXPECT_EQ(shares(config).size(), 1U);
}

}  // namespace calque

#include "calque/decode/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "decode/search_helpers.h"

namespace calque {

TEST(KvCache, SlotsComeBackAndContentSurvivesGrowth) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::causal));
  KvCache cache(*decoder);
  std::vector<int32_t> slots;
  EXPECT_EQ(cache.capacity(), 0);
  EXPECT_EQ(cache.used(), 0);
  for (int i = 0; i < 512; ++i) slots.push_back(cache.take());
  EXPECT_EQ(cache.capacity(), 512);
  EXPECT_EQ(cache.used(), 512);
  EXPECT_EQ(std::set<int32_t>(slots.begin(), slots.end()).size(), 512U);
  EXPECT_EQ(*std::min_element(slots.begin(), slots.end()), 0);
  EXPECT_EQ(*std::max_element(slots.begin(), slots.end()), 511);
  EXPECT_EQ(cache.layers().size(), 3U);
  for (const torch::Tensor& layer : cache.layers())  // two heads of eight, keys and values
    EXPECT_EQ(layer.sizes(), (torch::IntArrayRef{512, 2 * 2 * 8}));
  cache.layers()[1][slots[7]].fill_(3.5);
  const int32_t more = cache.take();
  EXPECT_EQ(cache.capacity(), 1024);
  EXPECT_EQ(cache.layers()[1][slots[7]][0].item<float>(), 3.5F);
  EXPECT_THAT(slots, testing::Not(testing::Contains(more)));
  cache.give_back(slots);
  EXPECT_EQ(cache.used(), 1);
}

}  // namespace calque

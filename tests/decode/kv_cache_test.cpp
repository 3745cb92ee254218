#include "calque/decode/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decode/search_helpers.h"

namespace calque {

TEST(KvCache, SlotsComeBackAndContentSurvivesGrowth) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::causal));
  KvCache cache(*decoder);
  std::vector<int32_t> slots;
  for (int i = 0; i < 512; ++i) slots.push_back(cache.take());
  cache.layers()[1][slots[7]].fill_(3.5);
  const int32_t more = cache.take();
  EXPECT_EQ(cache.capacity(), 1024);
  EXPECT_EQ(cache.layers()[1][slots[7]][0].item<float>(), 3.5F);
  EXPECT_THAT(slots, testing::Not(testing::Contains(more)));
  cache.give_back(slots);
  EXPECT_EQ(cache.used(), 1);
}

}  // namespace calque

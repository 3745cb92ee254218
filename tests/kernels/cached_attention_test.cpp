#include "calque/kernels/cached_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "calque/kernels/candidates.h"
#include "kernels/compare.h"
#include "kernels/ragged_layout.h"

namespace calque {
namespace {

// Two prompts with prefixes of 4 and 2 rows, and one new row that continues a sequence in the cache.
struct CachedCase {
  Layout layout;
  std::vector<int32_t> slots = {5, 0, 9, 2, 11, 12, 13, 14, 15, 3};
  std::vector<int32_t> visible = {5, 0, 9, 2, 11, 12, 13, 14, 15, 7, 1, 8, 3};
  std::vector<int64_t> visible_offsets = {0, 4, 9, 13}, prefix_lengths = {4, 2, 0};

  CacheIndex index() const { return {slots, visible, visible_offsets, prefix_lengths}; }
};

CachedCase make_case(bool all_queries) {
  CachedCase c;
  c.layout.offsets = {0, 4, 9, 10};
  c.layout.prefix_ends = {0, 0, 0};
  c.layout.query_offsets = all_queries ? std::vector<int64_t>{0, 4, 9, 10} : std::vector<int64_t>{0, 1, 3, 4};
  c.layout.positions = torch::tensor({0, 1, 2, 3, 0, 1, 2, 3, 4, 6}, torch::kInt64);
  c.layout.query_rows =
      all_queries ? torch::arange(10, torch::kInt64) : torch::tensor({3, 7, 8, 9}, torch::kInt64);
  return c;
}

}  // namespace

TEST(CachedAttention, OutputAndCacheMatchReference) {
  at::manual_seed(2);
  for (const AttentionShape& shape : {AttentionShape{4, 2, 16, 0.25}, AttentionShape{3, 3, 10, 0.3}}) {
    for (const bool all : {true, false}) {
      const CachedCase c = make_case(all);
      const RopeTable table = make_rope_table(32, shape.head_size, 10000);
      const auto wide = torch::randn({c.layout.queries(), shape.query_size() + 7});
      const auto q = wide.slice(1, 0, shape.query_size());  // columns of a wider tensor
      const auto kv = torch::randn({c.layout.rows(), shape.kv_size()});
      const auto cache = torch::randn({20, shape.kv_size()});
      for (const RopeTable* rope : {static_cast<const RopeTable*>(nullptr), &table}) {
        auto fast_cache = cache.clone(), plain_cache = cache.clone();
        const auto fast = cached_attention(q, kv, fast_cache, c.layout, c.index(), shape, rope);
        const auto plain = reference::cached_attention(q, kv, plain_cache, c.layout, c.index(), shape, rope);
        expect_close(fast, plain, 1e-5, "output");
        expect_close(fast_cache, plain_cache, 1e-6, "cache");
        if (!all) continue;
        auto fused_cache = cache.clone();  // q, k and v side by side
        const auto fused =
            cached_attention(torch::cat({q, kv}, 1), fused_cache, c.layout, c.index(), shape, rope);
        EXPECT_TRUE(torch::equal(fused, fast));
        EXPECT_TRUE(torch::equal(fused_cache, fast_cache));
      }
    }
  }
}

class CachedAttentionWindow : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Windows, CachedAttentionWindow, testing::Values(0, 3, 9));

TEST_P(CachedAttentionWindow, TokenByTokenMatchesOnePass) {
  at::manual_seed(3);
  const AttentionShape shape{2, 1, 8, 0.35, GetParam()};
  const RopeTable rope = make_rope_table(16, 8, 10000);
  const Layout whole = query_all_rows(ragged_layout({{3, 4}}, true));
  const auto q = torch::randn({9, 16}), kv = torch::randn({9, 16});
  const auto expected = reference::attention(q, kv, whole, shape, &rope);
  auto cache = torch::zeros({9, 16});
  const auto pass = [&](int64_t begin, int64_t end, int64_t prefix) {
    Layout layout;
    layout.offsets = layout.query_offsets = {0, end - begin};
    layout.prefix_ends = {0};
    layout.positions = torch::arange(begin, end, torch::kInt64);
    layout.query_rows = torch::arange(end - begin, torch::kInt64);
    std::vector<int32_t> slots, visible;
    for (int64_t i = 0; i < end; ++i) {
      visible.push_back(static_cast<int32_t>(8 - i));
      if (i >= begin) slots.push_back(static_cast<int32_t>(8 - i));
    }
    const std::vector<int64_t> offsets = {0, end}, prefixes = {prefix};
    return cached_attention(q.slice(0, begin, end), kv.slice(0, begin, end), cache, layout,
                            {slots, visible, offsets, prefixes}, shape, &rope);
  };
  std::vector<torch::Tensor> parts = {pass(0, 5, 5)};
  for (int64_t row = 5; row < 9; ++row) parts.push_back(pass(row, row + 1, 0));
  expect_close(torch::cat(parts), expected, 1e-5, "output");
}

TEST(Layout, SlicePairsEqualsTheLayoutOfThosePairs) {
  const Layout all = ragged_layout({{3, 4}, {1, 1}, {0, 5}, {2, 2}}, true);
  const Layout part = slice_pairs(all, 1, 3), alone = ragged_layout({{1, 1}, {0, 5}}, true);
  EXPECT_EQ(part.offsets, alone.offsets);
  EXPECT_EQ(part.prefix_ends, alone.prefix_ends);
  EXPECT_EQ(part.query_offsets, alone.query_offsets);
  EXPECT_TRUE(torch::equal(part.positions, alone.positions));
  EXPECT_TRUE(torch::equal(part.query_rows, alone.query_rows));
}

TEST(Candidates, MatchReferenceWithTiesAndBannedTokens) {
  at::manual_seed(4);
  for (const int64_t vocabulary : {1, 5, 37, 1003}) {
    auto logits = (torch::randn({7, vocabulary}) * 4).round();  // rounding makes ties
    std::vector<BannedToken> banned;
    std::vector<int32_t> forbidden;
    if (vocabulary > 7) banned = {{0, 3}, {0, 4}, {6, 0}}, forbidden = {4, 7};
    for (const int64_t count : {1, 4, 9}) {
      const Candidates plain = reference::top_candidates(logits.clone(), count, forbidden, banned);
      const Candidates fast = top_candidates(logits.clone(), count, forbidden, banned);
      EXPECT_EQ(fast.count, plain.count);
      EXPECT_EQ(fast.tokens, plain.tokens) << vocabulary << " " << count;
      for (size_t i = 0; i < plain.tokens.size(); ++i) {
        if (plain.tokens[i] < 0) continue;
        EXPECT_NEAR(fast.log_probabilities[i], plain.log_probabilities[i], 1e-5);
      }
    }
  }
}

TEST(Candidates, MissingCandidatesHaveTokenMinusOne) {
  const Candidates best = top_candidates(torch::zeros({1, 3}), 3, {1}, {});
  EXPECT_EQ(best.tokens, (std::vector<int32_t>{0, 2, -1}));
  EXPECT_NEAR(best.log_probabilities[0], -std::log(3.0), 1e-6);  // the banned token keeps its probability
}

}  // namespace calque

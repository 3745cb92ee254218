#include "calque/kernels/cached_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "calque/kernels/candidates.h"
#include "kernels/compare.h"

namespace calque {
namespace {

// Two prompts, one with a prefix that sees itself both ways, and one row that goes on from rows kept before.
struct CachedCase {
  Layout layout;
  CacheRows rows;
};

CachedCase make_case(bool all_asked) {
  CachedCase c;
  c.layout.offsets = {0, 4, 9, 10};
  c.layout.prefix_ends = {0, 0, 0};
  c.layout.query_offsets = all_asked ? std::vector<int64_t>{0, 4, 9, 10} : std::vector<int64_t>{0, 1, 3, 4};
  c.layout.positions = torch::tensor({0, 1, 2, 3, 0, 1, 2, 3, 4, 6}, torch::kInt64);
  c.layout.query_rows =
      all_asked ? torch::arange(10, torch::kInt64) : torch::tensor({3, 7, 8, 9}, torch::kInt64);
  c.rows.slots = {5, 0, 9, 2, 11, 12, 13, 14, 15, 3};
  c.rows.seen = {5, 0, 9, 2, 11, 12, 13, 14, 15, 7, 1, 8, 3};
  c.rows.seen_offsets = {0, 4, 9, 13};
  c.rows.prefixes = {4, 2, 0};
  return c;
}

}  // namespace

TEST(CachedAttention, EqualsItsReferenceAndKeepsTheSameRows) {
  at::manual_seed(2);
  for (const AttentionShape& shape : {AttentionShape{4, 2, 16, 0.25}, AttentionShape{3, 3, 10, 0.3}}) {
    for (const bool all : {true, false}) {
      const CachedCase c = make_case(all);
      const RotaryTable table = make_rotary_table(32, shape.head_width, 10000);
      const auto wide = torch::randn({c.layout.queries(), shape.query_width() + 7});
      const auto q = wide.slice(1, 0, shape.query_width());  // a part of a wider tensor
      const auto kv = torch::randn({c.layout.rows(), shape.key_value_width()});
      const auto cache = torch::randn({20, shape.key_value_width()});
      for (const RotaryTable* rotary : {static_cast<const RotaryTable*>(nullptr), &table}) {
        auto fast_cache = cache.clone(), plain_cache = cache.clone();
        const auto fast = cached_attention(q, kv, fast_cache, c.layout, c.rows, shape, rotary);
        const auto plain = reference::cached_attention(q, kv, plain_cache, c.layout, c.rows, shape, rotary);
        expect_close(fast, plain, 1e-5, "output");
        expect_close(fast_cache, plain_cache, 1e-6, "cache");
      }
    }
  }
}

class CachedAttentionWindow : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Windows, CachedAttentionWindow, testing::Values(0, 3, 9));

TEST_P(CachedAttentionWindow, RowByRowEqualsAllAtOnce) {
  at::manual_seed(3);
  const AttentionShape shape{2, 1, 8, 0.35, GetParam()};
  const RotaryTable rotary = make_rotary_table(16, 8, 10000);
  Batch batch;
  batch.add({{1}, {3}, 2}, std::vector<int32_t>{7, 7, 7}, std::vector<int32_t>{8, 8, 8, 8});
  const Layout whole = ask_for_all(make_layout(batch, true));
  const auto q = torch::randn({9, 16}), kv = torch::randn({9, 16});
  const auto expected = reference::attention(q, kv, whole, shape, &rotary);
  auto cache = torch::zeros({9, 16});
  const auto pass = [&](int64_t begin, int64_t end, int64_t prefix) {
    Layout layout;
    layout.offsets = layout.query_offsets = {0, end - begin};
    layout.prefix_ends = {0};
    layout.positions = torch::arange(begin, end, torch::kInt64);
    layout.query_rows = torch::arange(end - begin, torch::kInt64);
    CacheRows rows;
    for (int64_t i = 0; i < end; ++i) {
      rows.seen.push_back(static_cast<int32_t>(8 - i));
      if (i >= begin) rows.slots.push_back(static_cast<int32_t>(8 - i));
    }
    rows.seen_offsets = {0, end};
    rows.prefixes = {prefix};
    return cached_attention(q.slice(0, begin, end), kv.slice(0, begin, end), cache, layout, rows, shape,
                            &rotary);
  };
  std::vector<torch::Tensor> parts = {pass(0, 5, 5)};
  for (int64_t row = 5; row < 9; ++row) parts.push_back(pass(row, row + 1, 0));
  expect_close(torch::cat(parts), expected, 1e-5, "output");
}

TEST(Candidates, FastEqualsReferenceWithTiesAndBans) {
  at::manual_seed(4);
  for (const int64_t vocabulary : {1, 5, 37, 1003}) {
    auto logits = (torch::randn({7, vocabulary}) * 4).round();  // rounding makes ties
    std::vector<Ban> bans;
    std::vector<int32_t> forbidden;
    if (vocabulary > 7) bans = {{0, 3}, {0, 4}, {6, 0}}, forbidden = {4, 7};
    for (const int64_t count : {1, 4, 9}) {
      const Candidates plain = reference::best_candidates(logits.clone(), count, forbidden, bans);
      const Candidates fast = best_candidates(logits.clone(), count, forbidden, bans);
      EXPECT_EQ(fast.count, plain.count);
      EXPECT_EQ(fast.tokens, plain.tokens) << vocabulary << " " << count;
      for (size_t i = 0; i < plain.tokens.size(); ++i) {
        if (plain.tokens[i] < 0) continue;
        EXPECT_NEAR(fast.log_probabilities[i], plain.log_probabilities[i], 1e-5);
      }
    }
  }
}

TEST(Candidates, FewerThanAskedForAreMarked) {
  const Candidates best = best_candidates(torch::zeros({1, 3}), 3, {1}, {});
  EXPECT_EQ(best.tokens, (std::vector<int32_t>{0, 2, -1}));
  EXPECT_NEAR(best.log_probabilities[0], -std::log(3.0), 1e-6);  // the banned one keeps its share
}

}  // namespace calque

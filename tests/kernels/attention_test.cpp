#include "calque/kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/compare.h"
#include "kernels/ragged_layout.h"

namespace calque {
namespace {

struct Case {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  bool prefix;
  AttentionShape shape;
  bool rope;
};

const std::vector<Case> cases = {
    {{{3, 4}, {1, 1}, {7, 2}, {0, 5}}, true, {4, 4, 16, 0.25}, true},
    {{{3, 4}, {1, 1}, {7, 2}, {0, 5}}, false, {4, 2, 16, 0.25}, true},
    {{{20, 30}, {1, 0}}, true, {6, 3, 12, 0.3}, false},   // a width that is not a multiple of the vector size
    {{{0, 1}}, false, {1, 1, 2, 1.0}, true},              // one token
    {{{5, 70}, {90, 3}}, true, {2, 1, 64, 0.125}, true},  // longer than one tile of queries
    {{{200, 800}}, false, {2, 2, 32, 0.17}, true},
    {{{150, 130}, {2, 3}, {64, 64}}, true, {4, 2, 12, 0.3}, true},  // full and partial tiles, full prefixes
};

}  // namespace

TEST(FlatAttention, ValuesAndGradientsMatchReferenceOnRaggedBatches) {
  at::manual_seed(3);
  for (const Case& c : cases) {
    const RopeTable table = make_rope_table(1100, c.shape.head_size, 10000);
    const RopeTable* rope = c.rope ? &table : nullptr;
    const Layout target_queries = ragged_layout(c.pairs, c.prefix);
    for (const Layout& layout : {target_queries, query_all_rows(target_queries)}) {
      const auto q = torch::randn({layout.queries(), c.shape.query_size()});
      const auto kv = torch::randn({layout.rows(), c.shape.kv_size()});
      expect_same(
          {q, kv}, [&](const auto& in) { return attention(in[0], in[1], layout, c.shape, rope); },
          [&](const auto& in) { return reference::attention(in[0], in[1], layout, c.shape, rope); }, 2e-5);
    }
  }
}

TEST(FlatAttention, OnlineSoftmaxHandlesRisingScores) {
  at::manual_seed(6);
  const AttentionShape shape{2, 2, 16, 0.25};
  const Layout layout = query_all_rows(ragged_layout({{100, 200}}, true));
  const auto q = torch::rand({layout.queries(), shape.query_size()});
  const auto rise = torch::linspace(0, 60, layout.rows()).unsqueeze(1);  // scores up to about 100
  const auto kv = torch::cat({torch::rand({layout.rows(), shape.query_size()}) * rise,
                              torch::randn({layout.rows(), shape.query_size()})},
                             1);
  expect_same(
      {q, kv}, [&](const auto& in) { return attention(in[0], in[1], layout, shape, nullptr); },
      [&](const auto& in) { return reference::attention(in[0], in[1], layout, shape, nullptr); }, 2e-4);
}

TEST(FlatAttention, FusedQkvMatchesSeparateTensors) {
  at::manual_seed(4);
  const AttentionShape shape{4, 2, 8, 0.35};
  const RopeTable rope = make_rope_table(64, 8, 10000);
  const Layout layout = query_all_rows(ragged_layout({{4, 5}, {2, 9}}, true));
  const auto qkv = torch::randn({layout.rows(), shape.query_size() + shape.kv_size()});
  expect_same(
      {qkv}, [&](const auto& in) { return attention(in[0], layout, shape, &rope); },
      [&](const auto& in) {
        return reference::attention(in[0].slice(1, 0, 32), in[0].slice(1, 32), layout, shape, &rope);
      },
      2e-5);
}

TEST(FlatAttention, Float64UsesTheReferenceAndItsGradientMatchesFiniteDifferences) {
  at::manual_seed(5);
  const AttentionShape shape{2, 1, 4, 0.5};
  const Layout layout = ragged_layout({{2, 3}}, true);
  auto q = torch::randn({layout.queries(), 8}, torch::kFloat64).set_requires_grad(true);
  const auto kv = torch::randn({layout.rows(), 8}, torch::kFloat64);
  const auto loss = [&](const torch::Tensor& x) {
    return attention(x, kv, layout, shape, nullptr).square().sum();
  };
  loss(q).backward();
  for (int64_t i = 0; i < 8; ++i) {  // against finite differences
    auto up = q.detach().clone(), down = q.detach().clone();
    up[1][i] += 1e-5;
    down[1][i] -= 1e-5;
    EXPECT_NEAR(q.grad()[1][i].item<double>(), ((loss(up) - loss(down)) / 2e-5).item<double>(), 1e-6);
  }
}

TEST(FlatAttention, PairsDoNotAttendToEachOther) {
  at::manual_seed(6);
  const AttentionShape shape{2, 2, 8, 0.35};
  const Layout layout = query_all_rows(ragged_layout({{3, 3}, {4, 2}}, true));
  auto qkv = torch::randn({layout.rows(), 48});
  const auto before = attention(qkv, layout, shape, nullptr);
  qkv.slice(0, layout.offsets[1]).normal_();
  const auto after = attention(qkv, layout, shape, nullptr);
  EXPECT_TRUE(torch::equal(before.slice(0, 0, layout.offsets[1]), after.slice(0, 0, layout.offsets[1])));
  EXPECT_FALSE(torch::equal(before, after));
}

TEST(FlatAttention, MaskIsCausalExceptInsideThePrefix) {
  at::manual_seed(7);
  const AttentionShape shape{1, 1, 8, 0.35};
  for (const bool prefix : {false, true}) {
    const Layout layout = query_all_rows(
        ragged_layout({{3, 4}}, prefix));  // rows 0 … 4: <s>, source, <sep>; rows 5 … 8: target
    const auto q = torch::randn({9, 8}), kv = torch::randn({9, 16});
    const auto weights = attention_weights(q, kv, layout, shape, nullptr, 0)[0];
    for (int64_t i = 0; i < 9; ++i) {
      EXPECT_NEAR(weights[i].sum().item<double>(), 1, 1e-6);
      for (int64_t j = 0; j < 9; ++j) {
        const bool visible = j <= i || (prefix && j < 5);
        EXPECT_EQ(weights[i][j].item<float>() > 0, visible) << i << " " << j;
      }
    }
  }
}

TEST(FlatAttention, SlidingWindowMasksDistantRows) {
  at::manual_seed(6);
  AttentionShape shape{2, 1, 8, 0.35};
  const Layout layout = query_all_rows(ragged_layout({{3, 4}}, true));  // 9 rows, prefix of 5
  const auto q = torch::randn({9, 16}), kv = torch::randn({9, 16});
  shape.sliding_window = 3;
  const auto weights = attention_weights(q, kv, layout, shape, nullptr, 0);  // [heads, 9, 9]
  for (int64_t row = 0; row < 9; ++row) {
    for (int64_t column = 0; column < 9; ++column) {
      const bool visible = std::abs(row - column) < 3 && (column <= row || column < 5);
      EXPECT_EQ(weights[0][row][column].item<float>() > 0, visible) << row << " " << column;
    }
  }
  const auto values = kv.slice(1, 8).unsqueeze(0);
  expect_close(attention(q, kv, layout, shape, nullptr),
               torch::matmul(weights, values).transpose(0, 1).flatten(1), 1e-5, "output");
  shape.sliding_window = 9;  // covers all rows
  const auto wide = attention(q, kv, layout, shape, nullptr);
  shape.sliding_window = 0;
  expect_close(wide, attention(q, kv, layout, shape, nullptr), 1e-7, "window covers all rows");
}

TEST(FlatAttention, LargeScoresStayFinite) {
  const AttentionShape shape{1, 1, 8, 1.0};
  const Layout layout = query_all_rows(ragged_layout({{3, 3}}, false));
  const auto qkv = (torch::randn({layout.rows(), 24}) * 1000).set_requires_grad(true);
  const auto out = attention(qkv, layout, shape, nullptr);
  out.sum().backward();
  EXPECT_TRUE(out.isfinite().all().item<bool>());
  EXPECT_TRUE(qkv.grad().isfinite().all().item<bool>());
}

TEST(Rope, ScoresDependOnDistanceOnly) {
  const RopeTable table = make_rope_table(100, 16, 10000);
  const auto q = torch::randn({1, 1, 16}), k = torch::randn({1, 1, 16});
  const auto score = [&](int64_t a, int64_t b) {
    return (rotate(q, torch::tensor({a}), table) * rotate(k, torch::tensor({b}), table)).sum().item<double>();
  };
  EXPECT_NEAR(score(3, 1), score(50, 48), 1e-4);
  EXPECT_GT(std::abs(score(3, 1) - score(4, 1)), 1e-4);
}

}  // namespace calque

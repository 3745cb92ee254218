// The portable versions of the kernels, which other devices than the CPU use, against the references.
#include "calque/kernels/portable.h"

#include <gtest/gtest.h>

#include "calque/kernels/activation.h"
#include "calque/kernels/cached_attention.h"
#include "calque/kernels/candidates.h"
#include "calque/kernels/linear_cross_entropy.h"
#include "calque/kernels/norm.h"
#include "calque/kernels/padded_pairs.h"
#include "kernels/compare.h"
#include "kernels/ragged_layout.h"

namespace calque {
namespace {

using PairLengths = std::vector<std::pair<int64_t, int64_t>>;

// Many short pairs, one of a single token among them, and one long pair.
PairLengths skewed_lengths(int64_t short_pairs) {
  PairLengths pairs = {{0, 1}, {90, 110}};
  for (int64_t i = 0; i < short_pairs; ++i) pairs.emplace_back(i % 4, 1 + i % 7);
  return pairs;
}

int64_t padded_rows(const PaddedPairs& padded) {
  int64_t rows = 0;
  for (const PaddedGroup& group : padded.groups) rows += group.pairs * group.rows;
  return rows;
}

int64_t padded_cells(const PaddedPairs& padded) {
  int64_t cells = 0;
  for (const PaddedGroup& group : padded.groups) cells += group.mask.numel();
  return cells;
}

}  // namespace

TEST(PortableAttention, ValuesAndGradientsMatchReferenceOnRaggedBatches) {
  at::manual_seed(3);
  const PortableKernels portable;
  for (const PairLengths& pairs : {PairLengths{{3, 4}, {1, 1}, {7, 2}, {0, 5}}, PairLengths{{0, 1}},
                                   skewed_lengths(60), PairLengths{{5, 600}, {2, 2}}}) {
    for (const AttentionShape& shape :
         {AttentionShape{4, 4, 16, 0.25}, AttentionShape{6, 3, 12, 0.3}, AttentionShape{4, 1, 8, 0.3, 3}}) {
      for (const bool prefix : {true, false}) {
        const RopeTable table = make_rope_table(1100, shape.head_size, 10000);
        const RopeTable* rope = shape.kv_heads == 3 ? nullptr : &table;
        const Layout target_queries = ragged_layout(pairs, prefix);
        for (const Layout& layout : {target_queries, query_all_rows(target_queries)}) {
          expect_same(
              {torch::randn({layout.queries(), shape.query_size()}),
               torch::randn({layout.rows(), shape.kv_size()})},
              [&](const auto& in) { return attention(in[0], in[1], layout, shape, rope); },
              [&](const auto& in) { return reference::attention(in[0], in[1], layout, shape, rope); }, 2e-5);
        }
      }
    }
  }
}

TEST(PortableAttention, FusedQkvMatchesReference) {
  at::manual_seed(4);
  const PortableKernels portable;
  const AttentionShape shape{4, 2, 8, 0.35};
  const RopeTable rope = make_rope_table(64, 8, 10000);
  const Layout layout = query_all_rows(ragged_layout({{4, 5}, {2, 9}}, true));
  expect_same(
      {torch::randn({layout.rows(), shape.query_size() + shape.kv_size()})},
      [&](const auto& in) { return attention(in[0], layout, shape, &rope); },
      [&](const auto& in) {
        return reference::attention(in[0].slice(1, 0, 32), in[0].slice(1, 32), layout, shape, &rope);
      },
      2e-5);
}

TEST(PortableCachedAttention, OutputAndCacheMatchReference) {
  at::manual_seed(2);
  const PortableKernels portable;
  // Two prompts and 40 rows that continue sequences of different lengths.
  Layout layout;
  layout.offsets = {0, 4, 9};
  std::vector<int64_t> positions = {0, 1, 2, 3, 0, 1, 2, 3, 4};
  std::vector<int32_t> slots = {5, 0, 9, 2, 11, 12, 13, 14, 15}, visible = slots;
  std::vector<int64_t> visible_offsets = {0, 4, 9}, prefix_lengths = {4, 2};
  for (int32_t i = 0; i < 40; ++i) {
    slots.push_back(20 + i);
    for (int32_t earlier = 0; earlier < 1 + i % 11; ++earlier) visible.push_back(60 + (i + earlier) % 30);
    visible.push_back(20 + i);
    visible_offsets.push_back(static_cast<int64_t>(visible.size()));
    prefix_lengths.push_back(0);
    positions.push_back(1 + i % 11);
    layout.offsets.push_back(layout.rows() + 1);
  }
  layout.prefix_ends.assign(42, 0);
  layout.positions = index_tensor(positions);
  const CacheIndex index{slots, visible, visible_offsets, prefix_lengths};
  for (const bool all : {true, false}) {
    layout.query_offsets = layout.offsets;
    layout.query_rows = torch::arange(49, torch::kInt64);
    if (!all) {  // the last row of the first prompt and two of the second
      for (size_t i = 1; i < layout.query_offsets.size(); ++i) layout.query_offsets[i] -= i == 1 ? 3 : 6;
      layout.query_rows = torch::cat({torch::tensor({3, 7, 8}), torch::arange(9, 49)});
    }
    for (const AttentionShape& shape : {AttentionShape{4, 2, 16, 0.25}, AttentionShape{3, 3, 10, 0.3, 3}}) {
      const RopeTable rope = make_rope_table(32, shape.head_size, 10000);
      const auto q = torch::randn({layout.queries(), shape.query_size()}),
                 kv = torch::randn({49, shape.kv_size()}), cache = torch::randn({100, shape.kv_size()});
      auto found_cache = cache.clone(), expected_cache = cache.clone();
      const auto found = cached_attention(q, kv, found_cache, layout, index, shape, &rope);
      const auto expected = reference::cached_attention(q, kv, expected_cache, layout, index, shape, &rope);
      expect_close(found, expected, 1e-5, "output");
      EXPECT_TRUE(torch::equal(found_cache, expected_cache));
    }
  }
}

TEST(PaddedPairs, OneLongPairDoesNotWidenTheOthers) {
  const Layout layout = query_all_rows(ragged_layout(skewed_lengths(1000), true));
  const PaddedPairs padded = pad_pairs(layout);
  int64_t cells = 0;
  for (size_t pair = 0; pair < layout.prefix_ends.size(); ++pair)
    cells +=
        (layout.offsets[pair + 1] - layout.offsets[pair]) * (layout.offsets[pair + 1] - layout.offsets[pair]);
  EXPECT_GT(1002 * 201 * 201, 100 * cells);  // as one rectangle
  EXPECT_LT(padded_cells(padded), 4 * cells + (1 << 16));
  EXPECT_LT(padded_rows(padded), 4 * layout.rows());
  EXPECT_LE(padded.groups.size(), 3U);
}

TEST(PaddedPairs, PairsOfSimilarLengthAreOneGroup) {
  PairLengths pairs;
  for (int64_t i = 0; i < 300; ++i) pairs.emplace_back(14 + i % 6, 15 + i % 5);
  EXPECT_EQ(pad_pairs(ragged_layout(pairs, true)).groups.size(), 1U);
}

TEST(PaddedPairs, TheNumberOfGroupsIsTheLogarithmOfTheLengths) {
  PairLengths pairs;
  for (int64_t i = 0; i < 500; ++i) pairs.emplace_back(0, 1 + i % 127);
  EXPECT_LE(pad_pairs(query_all_rows(ragged_layout(pairs, false))).groups.size(), 7U);
}

TEST(PortableRows, NormsActivationsAndLossMatchReference) {
  at::manual_seed(5);
  const PortableKernels portable;
  expect_same(
      {torch::randn({33, 100}), torch::randn({100})},
      [](const auto& in) { return rms_norm(in[0], in[1], 1e-5); },
      [](const auto& in) { return reference::rms_norm(in[0], in[1], 1e-5); }, 1e-5);
  expect_same(
      {torch::randn({33, 100})}, [](const auto& in) { return gated_activation(in[0], Gate::silu); },
      [](const auto& in) { return reference::gated_activation(in[0], Gate::silu); }, 1e-6);
  const auto labels = torch::randint(1001, {300}, torch::kInt64);
  for (const double smoothing : {0.0, 0.1}) {
    for (const auto type : {torch::kFloat32, torch::kBFloat16, torch::kFloat16}) {
      expect_same(
          {torch::randn({300, 24}), torch::randn({1001, 24})},
          [&](const auto& in) {
            return linear_cross_entropy(in[0], in[1], labels, smoothing, type).smoothed;
          },
          [&](const auto& in) {
            return reference::linear_cross_entropy(in[0], in[1], labels, smoothing, type).smoothed;
          },
          type == torch::kFloat32 ? 2e-5 : 2e-2);  // LibTorch's own products are rounded too
    }
  }
}

TEST(PortableCandidates, MatchReferenceWithTiesAndBannedTokens) {
  at::manual_seed(4);
  const PortableKernels portable;
  for (const int64_t vocabulary : {1, 5, 37, 1003}) {
    const auto logits = (torch::randn({7, vocabulary}) * 4).round();  // rounding makes ties
    std::vector<BannedToken> banned;
    std::vector<int32_t> forbidden;
    if (vocabulary > 7) banned = {{0, 3}, {0, 4}, {6, 0}}, forbidden = {4, 7};
    if (vocabulary == 5) forbidden = {1, 2, 3};
    for (const int64_t count : {1, 4, 9}) {
      const Candidates plain = reference::top_candidates(logits.clone(), count, forbidden, banned);
      const Candidates found = top_candidates(logits.clone(), count, forbidden, banned);
      EXPECT_EQ(found.count, plain.count);
      EXPECT_EQ(found.tokens, plain.tokens) << vocabulary << " " << count;
      EXPECT_EQ(found.log_probabilities, plain.log_probabilities);
    }
  }
}

}  // namespace calque

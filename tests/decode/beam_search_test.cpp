// What the beam search leaves out changes nothing of what it finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "calque/base/error.h"
#include "calque/decode/kv_cache.h"
#include "calque/decode/scorer.h"
#include "decode/search_helpers.h"

namespace calque {

TEST(Search, DroppingBeamsWithoutHopeChangesNothing) {
  ModelConfig config = search_model(AttentionKind::prefix);
  config.vocabulary = 12;
  const auto decoder = sharp_decoder(config);
  SearchOptions options = options_with(4);
  options.decode.early_stopping = false;
  options.decode.nbest = 2;
  std::vector<std::vector<int32_t>> all;
  for (int32_t i = 0; i < 12; ++i) all.push_back({4 + i % 8, 4 + i * 5 % 8, 4 + i * 3 % 7});
  const auto found = run_search(*decoder, options, all);
  size_t compared = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto expected = plain_beam_search(*decoder, options, all[i]);
    for (size_t n = 0; n < std::min<size_t>(2, expected.size()); ++n, ++compared) {
      EXPECT_EQ(found[i][n].tokens, expected[n].tokens) << i << ", " << n;
      EXPECT_NEAR(found[i][n].score, expected[n].score, 1e-4);
    }
  }
  EXPECT_GT(compared, 12U);  // most of them do end
}

TEST(Search, NotAskingBeamsThatAreFarBehindChangesNothing) {
  ModelConfig config = search_model(AttentionKind::causal);
  config.vocabulary = 12;
  for (const double scale : {30, 40}) {  // so sharp that beams do fall far behind
    const auto decoder = sharp_decoder(config, 5, scale);
    SearchOptions options = options_with(4);
    options.decode.nbest = 4;
    std::vector<std::vector<int32_t>> all;
    for (int32_t i = 0; i < 12; ++i) all.push_back({4 + i % 8, 4 + i * 5 % 8, 4 + i * 3 % 7});
    const auto found = run_search(*decoder, options, all);
    for (size_t i = 0; i < all.size(); ++i) {
      std::vector<std::vector<int32_t>> expected, ended;
      for (const Hypothesis& one : plain_beam_search(*decoder, options, all[i]))
        expected.push_back(one.tokens);
      for (const Hypothesis& one : found[i]) {
        if (one.ended) ended.push_back(one.tokens);
      }
      EXPECT_EQ(ended, expected) << i << ", scale " << scale;
    }
  }
}

TEST(Search, AWideBeamFindsTheBestOfAllTargets) {
  ModelConfig config = search_model(AttentionKind::prefix);
  config.vocabulary = 9;
  Decoder decoder(config);
  decoder.initialise(3);
  {
    const torch::NoGradGuard no_gradients;
    for (auto& parameter : decoder.parameters()) {
      if (parameter.dim() == 2) parameter.mul_(8);
    }
  }
  SearchOptions options = options_with(200);
  options.decode.early_stopping = false;
  options.decode.max_length_ratio = 1e-9;
  options.decode.max_length_extra = 3;  // tokens, the end among them
  const std::vector<int32_t> source = {4, 6, 5};
  std::vector<TokenPair> every = {{source, {}}};
  for (size_t begin = 0, length = 0; length < 2; ++length) {
    const size_t stop = every.size();
    for (; begin < stop; ++begin) {
      for (int32_t token = 4; token < 9; ++token) {
        every.push_back(every[begin]);
        every.back().target.push_back(token);
      }
    }
  }
  const auto scores = score_pairs(decoder, options.format, every);
  double best = -INFINITY;
  std::vector<int32_t> best_target;
  for (size_t i = 0; i < every.size(); ++i) {
    const double sum = std::accumulate(scores[i].begin(), scores[i].end(), 0.0);
    const double score = sum / std::pow((5.0 + static_cast<double>(scores[i].size())) / 6, 0.6);
    if (score > best) {
      best = score;
      best_target = every[i].target;
    }
  }
  const auto found = run_search(decoder, options, {source}).front().front();
  EXPECT_EQ(found.tokens, best_target);
  EXPECT_NEAR(found.score, best, 1e-4);
}

TEST(Search, AListOfTranslationsDoesNotChangeTheBest) {
  const auto packed =
      packed_copy(*sharp_decoder(search_model(AttentionKind::prefix)), WeightPrecision::float32);
  const auto all = sources(60);
  const auto alone = run_search(*packed, options_with(4), all);
  for (const int64_t nbest : {2, 4}) {
    SearchOptions options = options_with(4);
    options.decode.nbest = nbest;
    const auto lists = run_search(*packed, options, all);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(lists[i].front().tokens, alone[i].front().tokens) << i;
      EXPECT_EQ(lists[i].front().score, alone[i].front().score) << i;
      EXPECT_EQ(static_cast<int64_t>(lists[i].size()), nbest) << i;
      for (size_t j = 1; j < lists[i].size(); ++j) EXPECT_NE(lists[i][j].tokens, lists[i][0].tokens);
    }
  }
}

}  // namespace calque

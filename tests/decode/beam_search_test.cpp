// What the beam search leaves out changes nothing of what it finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

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

// Random small models, sources, beams and penalties: the search, which drops and defers beams, finds what the
// plain one finds.
TEST(Search, FindsWhatThePlainSearchFindsInThousandsOfRandomCases) {
  std::mt19937_64 random(20);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int64_t cases = 0, compared = 0;
  for (int model = 0; model < 60; ++model) {
    ModelConfig config = tiny_config(draw(7, 12));
    config.layers = 1;
    config.hidden_size = 8;
    config.heads = 2;
    config.kv_heads = 1;
    config.mlp_size = 12;
    config.attention = draw(0, 1) == 0 ? AttentionKind::prefix : AttentionKind::causal;
    if (draw(0, 1) == 0) config.target_positions = TargetPositions::restart;
    const auto decoder =
        sharp_decoder(config, static_cast<uint64_t>(model), static_cast<double>(draw(8, 70)));
    for (int which = 0; which < 4; ++which) {
      std::vector<int32_t> source;
      for (int64_t i = draw(1, 4); i > 0; --i)
        source.push_back(static_cast<int32_t>(draw(4, config.vocabulary - 1)));
      const int64_t max_tokens = draw(2, 7);
      SearchOptions options = options_with(1);
      options.decode.max_length_ratio = 1e-9;
      options.decode.max_length_extra = max_tokens;
      NextTokens next(*decoder, options, source);
      for (int setting = 0; setting < 9; ++setting, ++cases) {
        options.decode.beam = draw(1, 8);
        options.decode.nbest = draw(0, 2) == 0 ? draw(1, options.decode.beam) : 1;
        options.decode.length_penalty = static_cast<double>(draw(0, 6)) / 4;
        options.decode.early_stopping = draw(0, 1) == 0;
        auto found = run_search(*decoder, options, {source}).front();
        ASSERT_FALSE(found.empty());
        std::erase_if(found, [](const Hypothesis& one) { return !one.ended; });  // cut off at max_tokens
        // The best of a list is what a search for one finds; the others come from a search for the list.
        const PlainSearch best = plain_beam_search(next, options.decode, static_cast<size_t>(max_tokens), 1);
        const PlainSearch list =
            plain_beam_search(next, options.decode, static_cast<size_t>(max_tokens), options.decode.nbest);
        // Rounding decides between candidates that are as good as equal.
        if (std::min(best.smallest_gap, list.smallest_gap) < 1e-4) continue;
        std::vector<Hypothesis> expected = list.ended;
        if (!best.ended.empty()) {
          std::erase_if(expected, [&](const Hypothesis& one) { return one.tokens == best.ended[0].tokens; });
          expected.insert(expected.begin(), best.ended[0]);
        }
        const auto wanted = static_cast<size_t>(options.decode.nbest);
        for (size_t i = 0; i < std::min(wanted, expected.size()); ++i, ++compared) {
          ASSERT_LT(i, found.size()) << "case " << cases;
          ASSERT_EQ(found[i].tokens, expected[i].tokens)
              << "case " << cases << ", beam " << options.decode.beam << ", rank " << i;
          ASSERT_NEAR(found[i].score, expected[i].score, 1e-3);
        }
      }
    }
  }
  EXPECT_EQ(cases, 2160);
  EXPECT_GT(compared, 1500);  // most searches end by themselves, and few candidates are equal
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

#include "calque/decode/search.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "calque/base/error.h"
#include "calque/decode/kv_cache.h"
#include "calque/decode/scorer.h"
#include "decode/search_helpers.h"

namespace calque {

TEST(Search, GreedyWithTheCacheEqualsGreedyWithoutIt) {
  ModelConfig gemma =
      search_model(AttentionKind::causal);  // its norms, and a window that sentences are longer than
  gemma.sliding_window = 6;
  gemma.layer_types = {LayerType::sliding_attention, LayerType::full_attention};
  apply_architecture(gemma, Architecture::gemma3);
  for (const ModelConfig& config :
       {search_model(AttentionKind::prefix), search_model(AttentionKind::causal), gemma}) {
    const auto decoder = sharp_decoder(config);
    const SearchOptions options = options_with(1);
    const auto all = sources(40);
    const auto packed = packed_copy(*decoder, WeightPrecision::float32);
    const auto found = run_search(*decoder, options, all);
    const auto found_packed = run_search(*packed, options, all);
    size_t different = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto expected = greedy_without_cache(*decoder, options, all[i]);
      EXPECT_EQ(found[i].front().tokens, expected) << i;
      EXPECT_EQ(found_packed[i].front().tokens, expected) << i;
      different += expected != found[0].front().tokens;
    }
    EXPECT_GT(different, 20U);  // the model does look at its source
  }
}

TEST(Search, ABatchOfManyEqualsAsManyBatchesOfOne) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  const auto packed = packed_copy(*decoder, WeightPrecision::int8);
  for (const int64_t beam : {1, 4}) {
    SearchOptions options = options_with(beam);
    options.decode.nbest = beam;
    const auto all = sources(100);
    options.decode.batch = 64;
    const auto together = run_search(*packed, options, all);
    options.decode.batch = 1;
    const auto alone = run_search(*packed, options, all);
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(together[i].size(), alone[i].size());
      for (size_t j = 0; j < alone[i].size(); ++j) {
        EXPECT_EQ(together[i][j].tokens, alone[i][j].tokens) << i << " " << j;
        EXPECT_EQ(together[i][j].score, alone[i][j].score);  // to the bit
      }
    }
  }
}

TEST(Search, SeveralWorkersFindWhatOneFinds) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  const auto packed = packed_copy(*decoder, WeightPrecision::float32);
  const auto all = sources(150);
  const int threads = at::get_num_threads();
  for (const int64_t batch : {12, 64}) {
    SearchOptions options = options_with(3);
    options.decode.batch = batch;
    at::set_num_threads(1);
    const auto alone = run_search(*packed, options, all);
    at::set_num_threads(3);
    const auto together = run_search(*packed, options, all);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(together[i].front().tokens, alone[i].front().tokens) << i;
      EXPECT_EQ(together[i].front().score, alone[i].front().score) << i;
    }
  }
  at::set_num_threads(threads);
}

TEST(Search, RequestsWithOptionsOfTheirOwnFindWhatTheyFindAlone) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  const auto packed = packed_copy(*decoder, WeightPrecision::float32);
  std::vector<SearchOptions> kinds;
  for (const int64_t beam : {1, 2, 6}) kinds.push_back(options_with(beam));
  kinds[1].decode.length_penalty = 2;
  kinds[1].decode.early_stopping = false;
  kinds[2].decode.nbest = 3;
  kinds[2].decode.no_repeat_ngram = 2;
  kinds.push_back(options_with(1));
  kinds.back().decode.sample = true;
  kinds.back().decode.nbest = 2;
  const auto all = sources(120);
  std::vector<std::vector<std::vector<Hypothesis>>> alone;
  for (const SearchOptions& options : kinds) alone.push_back(run_search(*packed, options, all));

  Search search(*packed, options_with(4));
  size_t at = 0, results = 0;
  search.run(
      [&](bool) -> std::optional<SearchRequest> {
        if (at == all.size()) return std::nullopt;
        SearchRequest request{static_cast<int64_t>(1000 + at), all[at]};
        request.decode = std::make_shared<DecodeConfig>(kinds[at % kinds.size()].decode);
        request.random_stream = static_cast<int64_t>(at);
        ++at;
        return request;
      },
      [&](int64_t id, const std::vector<Hypothesis>& found) {
        const auto i = static_cast<size_t>(id - 1000);
        const auto& expected = alone[i % kinds.size()][i];
        ASSERT_EQ(found.size(), expected.size()) << i;
        for (size_t j = 0; j < found.size(); ++j) {
          EXPECT_EQ(found[j].tokens, expected[j].tokens) << i << " " << j;
          EXPECT_EQ(found[j].score, expected[j].score) << i << " " << j;  // to the bit
        }
        ++results;
      });
  EXPECT_EQ(results, all.size());
}

TEST(Search, ACancelledRequestEndsWithoutAResultAndTheOthersGoOn) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  const auto packed = packed_copy(*decoder, WeightPrecision::float32);
  const auto all = sources(60);
  const SearchOptions options = options_with(3);
  const auto expected = run_search(*packed, options, all);
  Search search(*packed, options);
  for (int round = 0; round < 2; ++round) {  // the cache is as good as new after it
    size_t at = 0;
    std::vector<int64_t> ended;
    search.run(
        [&](bool) {
          return at < all.size() ? std::optional(SearchRequest{static_cast<int64_t>(at), all[at++]})
                                 : std::nullopt;
        },
        [&](int64_t id, const std::vector<Hypothesis>& found) {
          ended.push_back(id);
          EXPECT_EQ(found.front().tokens, expected[static_cast<size_t>(id)].front().tokens);
        },
        [&](int64_t id, std::span<const int32_t> tokens) { return id % 3 != 1 || tokens.size() < 2; });
    for (const int64_t id : ended) {
      if (id % 3 == 1) {
        EXPECT_LE(expected[static_cast<size_t>(id)].front().tokens.size(), 2U);
      }
    }
    EXPECT_GE(ended.size(), 40U);
    EXPECT_LT(ended.size(), 60U);
  }
}

TEST(Search, WhatAllPromptsBeginWithIsReadOnceAndChangesNothing) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::causal));
  const auto packed = packed_copy(*decoder, WeightPrecision::float32);
  SearchOptions options = options_with(3);
  options.decode.max_length_ratio = 1e-9;
  options.decode.batch = 7;
  auto all = sources(30);
  options.format.begin = {1, 9, 30, 12, 40};  // examples, say
  const auto shared = run_search(*packed, options, all);
  options.format.begin = {1};
  for (auto& source : all) source.insert(source.begin(), {9, 30, 12, 40});
  const auto repeated = run_search(*packed, options, all);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(shared[i].front().tokens, repeated[i].front().tokens);
    EXPECT_EQ(shared[i].front().score, repeated[i].front().score);  // to the bit
  }
}

TEST(Search, ScoresEqualThoseOfForcedDecoding) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  const auto packed = packed_copy(*decoder, WeightPrecision::float32);
  SearchOptions options = options_with(5);
  options.decode.nbest = 5;
  const auto all = sources(12);
  const auto found = run_search(*packed, options, all);
  for (size_t i = 0; i < all.size(); ++i) {
    double last = INFINITY;
    for (const Hypothesis& one : found[i]) {
      // The best is what a search for one translation finds; the others are sorted behind it.
      if (&one != &found[i].front()) {
        EXPECT_LE(one.score, last);
        last = one.score;
      }
      if (!one.ended) continue;
      const auto scores = score_pairs(*decoder, options.format, {{all[i], one.tokens}}).front();
      ASSERT_EQ(scores.size(), one.token_log_probabilities.size());
      const auto packed_scores = score_pairs(*packed, options.format, {{all[i], one.tokens}}).front();
      ASSERT_EQ(packed_scores.size(), scores.size());
      for (size_t t = 0; t < scores.size(); ++t) {
        EXPECT_NEAR(scores[t], one.token_log_probabilities[t], 2e-4);
        EXPECT_NEAR(packed_scores[t], one.token_log_probabilities[t], 1e-5);
      }
      const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
      EXPECT_NEAR(one.log_probability, sum, 1e-3);
      EXPECT_NEAR(one.score, sum / std::pow((5.0 + static_cast<double>(scores.size())) / 6, 0.6), 1e-3);
    }
  }
}

TEST(Search, AForcedPrefixIsKeptAndGoneOnFrom) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  const SearchOptions options = options_with(1);
  const auto all = sources(8);
  const std::vector<int32_t> prefix = {20, 33};
  const auto found = run_search(*decoder, options, all, prefix);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& tokens = found[i].front().tokens;
    ASSERT_GE(tokens.size(), 2U);
    EXPECT_EQ(std::vector<int32_t>(tokens.begin(), tokens.begin() + 2), prefix);
    const auto next = next_log_probabilities(*decoder, options.format, all[i], prefix);
    const int32_t first = tokens.size() > 2 ? tokens[2] : end_token;
    EXPECT_NEAR(next[first].item<float>(), found[i].front().token_log_probabilities.front(), 1e-3);
  }
}

TEST(Search, NoNgramComesTwiceWhereThatIsForbidden) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  SearchOptions options = options_with(2);
  options.decode.no_repeat_ngram = 1;
  options.decode.max_length_extra = 30;
  for (const auto& found : run_search(*decoder, options, sources(20))) {
    std::vector<int32_t> sorted = found.front().tokens;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
  }
}

TEST(Search, SamplingFollowsTheSeedAloneAndTheModelsProbabilities) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  SearchOptions options = options_with(1);
  options.decode.sample = true;
  options.decode.nbest = 3;
  options.decode.temperature = 1.5;
  const auto all = sources(20);
  const auto first = run_search(*decoder, options, all);
  options.decode.batch = 3;
  const auto again = run_search(*decoder, options, all);
  options.decode.seed = 2;
  const auto other = run_search(*decoder, options, all);
  size_t same = 0, same_with_other_seed = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    same += first[i].front().tokens == again[i].front().tokens;
    same_with_other_seed += first[i].front().tokens == other[i].front().tokens;
  }
  EXPECT_EQ(same, all.size());
  EXPECT_LT(same_with_other_seed, all.size());
  options.decode.top_k = 1;  // then there is nothing to draw
  options.decode.nbest = 1;
  const auto greedy = run_search(*decoder, options_with(1), all);
  const auto top = run_search(*decoder, options, all);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(top[i].front().tokens, greedy[i].front().tokens);
    EXPECT_THAT(top[i].front().token_log_probabilities,
                testing::Pointwise(testing::FloatNear(1e-4F), greedy[i].front().token_log_probabilities));
  }
}

TEST(Search, RunsAgainWithOtherSettingsAndKeepsItsCache) {
  const auto packed =
      packed_copy(*sharp_decoder(search_model(AttentionKind::causal)), WeightPrecision::float32);
  const auto all = sources(6);
  SearchOptions options = options_with(1);
  options.format.begin = {1, 9, 30, 12};  // examples, which are read once
  Search search(*packed, options);
  const auto best = [&] {
    std::vector<std::vector<int32_t>> found(all.size());
    size_t at = 0;
    search.run(
        [&](bool) {
          return at < all.size() ? std::optional(SearchRequest{static_cast<int64_t>(at), all[at++]})
                                 : std::nullopt;
        },
        [&](int64_t id, std::vector<Hypothesis> list) {
          found[static_cast<size_t>(id)] = list.front().tokens;
        });
    return found;
  };
  const auto greedy = best();
  search.config().beam = 4;
  const auto beam = best();
  search.config().beam = 1;
  EXPECT_EQ(best(), greedy);
  options.decode.beam = 4;
  const auto fresh = run_search(*packed, options, all);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(beam[i], fresh[i].front().tokens);
}

TEST(Search, ASourceTooLongForTheModelIsRefused) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  EXPECT_THROW(run_search(*decoder, options_with(1), {std::vector<int32_t>(120, 5)}), UserError);
  SearchOptions options = options_with(2);
  options.decode.nbest = 3;
  EXPECT_THROW(run_search(*decoder, options, sources(1)), UserError);
}

// Once the input has nothing at hand, all workers finish what they have, and only then one waits for more:
// otherwise one of them could go on alone with what trickles in while the others are idle.
TEST(Search, WorkersThatFoundNothingDoNotAskAgainBeforeAllAreDone) {
  const auto packed =
      packed_copy(*sharp_decoder(search_model(AttentionKind::prefix)), WeightPrecision::float32);
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  SearchOptions options = options_with(1);
  options.decode.batch = 16;
  const auto all = sources(32);
  const size_t few = 8;  // of two threads: sentences_to_end_workers each
  size_t given = 0, found = 0, refused_with_few = 0;
  std::vector<size_t> found_when_waiting;
  const NextRequest next = [&](bool wait) -> std::optional<SearchRequest> {
    if (wait) found_when_waiting.push_back(found);
    if (given == all.size() || (!wait && given % 16 == 0)) {  // sixteen at a time
      refused_with_few += !wait && given - found < few;
      return std::nullopt;
    }
    ++given;
    return SearchRequest{static_cast<int64_t>(given - 1), all[given - 1]};
  };
  Search(*packed, options).run(next, [&](int64_t, const auto&) { ++found; });
  at::set_num_threads(threads);
  EXPECT_EQ(found_when_waiting, (std::vector<size_t>{0, 16, 32}));
  EXPECT_EQ(refused_with_few,
            2U);  // once per sixteen: with more in progress they may ask as often as they like
}

TEST(Search, AnErrorInOneWorkerEndsAllOfThem) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  const auto packed = packed_copy(*decoder, WeightPrecision::float32);
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  int64_t asked = 0;
  const NextRequest next = [&](bool) -> std::optional<SearchRequest> {
    const size_t length = asked == 40 ? 200 : 5;  // 200 is more than the model has positions
    return asked == 100'000 ? std::nullopt
                            : std::optional(SearchRequest{asked++, std::vector<int32_t>(length, 7)});
  };
  EXPECT_THROW(Search(*packed, options_with(2)).run(next, [](int64_t, auto) {}), UserError);
  EXPECT_LT(asked, 1000);
  at::set_num_threads(threads);
}

}  // namespace calque

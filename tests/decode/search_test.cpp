#include "calque/decode/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "calque/base/error.h"
#include "calque/decode/kv_cache.h"
#include "calque/decode/scorer.h"
#include "calque/model/packed_decoder.h"

namespace calque {
namespace {

constexpr int32_t end_token = 2;

ModelConfig search_model(AttentionKind attention) {
  ModelConfig config;
  config.layers = 3;
  config.width = 32;
  config.heads = 4;
  config.key_value_heads = 2;
  config.feed_forward_width = 48;
  config.max_positions = 96;
  config.vocabulary = 60;
  config.attention = attention;
  return config;
}

// Weights large enough that its choices are sharp, as a trained model's are.
std::shared_ptr<Decoder> sharp_decoder(const ModelConfig& config, uint64_t seed = 5, double scale = 12) {
  auto decoder = std::make_shared<Decoder>(config);
  decoder->initialise(seed);
  const torch::NoGradGuard no_gradients;
  for (auto& parameter : decoder->parameters()) {
    if (parameter.dim() == 2) parameter.mul_(scale);
  }
  decoder->eval();
  return decoder;
}

SearchOptions options_with(int64_t beam) {
  SearchOptions options;
  options.decode.beam = beam;
  options.decode.max_length_more = 12;
  options.decode.max_length_ratio = 1;
  options.format = {{1}, {3}, end_token};
  options.forbidden = {0, 1, 3};
  return options;
}

std::vector<std::vector<int32_t>> sources(size_t count) {
  std::vector<std::vector<int32_t>> all;
  for (size_t i = 0; i < count; ++i) {
    std::vector<int32_t> source;
    for (size_t j = 0; j < 1 + i * 7 % 23; ++j)
      source.push_back(static_cast<int32_t>(4 + (i * 31 + j * 17) % 56));
    all.push_back(source);
  }
  return all;
}

std::vector<std::vector<Hypothesis>> run_search(const SearchModel& model, const SearchOptions& options,
                                                const std::vector<std::vector<int32_t>>& all,
                                                const std::vector<int32_t>& prefix = {}) {
  std::vector<std::vector<Hypothesis>> results(all.size());
  size_t at = 0;
  search(
      model, options,
      [&](bool) -> std::optional<SearchRequest> {
        if (at == all.size()) return std::nullopt;
        ++at;
        return SearchRequest{static_cast<int64_t>(at - 1), all[at - 1], prefix};
      },
      [&](int64_t id, std::vector<Hypothesis> found) {
        results[static_cast<size_t>(id)] = std::move(found);
      });
  return results;
}

// Log-probabilities of the next token, from the whole sequence and without a cache.
torch::Tensor next_log_probabilities(const Decoder& decoder, const SequenceFormat& format,
                                     const std::vector<int32_t>& source, const std::vector<int32_t>& target) {
  const torch::NoGradGuard no_gradients;
  Batch batch;
  batch.add(format, source, target);
  const Layout layout = make_layout(batch, decoder.config().attention == AttentionKind::prefix);
  return decoder.logits(index_tensor(batch.tokens), layout).select(0, -1).log_softmax(0);
}

std::vector<int32_t> greedy_without_cache(const Decoder& decoder, const SearchOptions& options,
                                          const std::vector<int32_t>& source) {
  std::vector<int32_t> target;
  const size_t most = source.size() + 12;
  while (target.size() < most) {
    auto scores = next_log_probabilities(decoder, options.format, source, target);
    for (const int32_t token : options.forbidden) scores[token] = -INFINITY;
    const auto best = static_cast<int32_t>(scores.argmax().item<int64_t>());
    if (best == end_token) break;
    target.push_back(best);
  }
  return target;
}

// Beam search written as plainly as can be: all beams are asked in every step, and nothing is dropped before
// the greatest length is reached. What ended keeps its place if the search stops when all have.
std::vector<Hypothesis> plain_beam_search(const Decoder& decoder, const SearchOptions& options,
                                          const std::vector<int32_t>& source) {
  const auto width = static_cast<size_t>(options.decode.beam);
  std::vector<Hypothesis> beams(1), ended;
  for (size_t length = 1; length <= source.size() + 12; ++length) {
    std::vector<Hypothesis> longer;
    for (const Hypothesis& beam : beams) {
      auto scores = next_log_probabilities(decoder, options.format, source, beam.tokens);
      for (const int32_t token : options.forbidden) scores[token] = -INFINITY;
      for (int32_t token = 0; token < scores.size(0); ++token) {
        longer.push_back(beam);
        longer.back().tokens.push_back(token);
        longer.back().log_probability += scores[token].item<double>();
      }
    }
    std::stable_sort(longer.begin(), longer.end(), [](const Hypothesis& a, const Hypothesis& b) {
      return a.log_probability > b.log_probability;
    });
    beams.clear();
    for (size_t rank = 0; rank < longer.size(); ++rank) {
      if (beams.size() + (options.decode.early_stop ? ended.size() : 0) >= width) break;
      Hypothesis& one = longer[rank];
      if (one.tokens.back() != end_token) {
        beams.push_back(one);
      } else if (rank < width) {
        one.tokens.pop_back();
        one.score = one.log_probability /
                    std::pow((5.0 + static_cast<double>(length)) / 6, options.decode.length_penalty);
        ended.push_back(one);
      }
    }
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  return ended;
}

}  // namespace

TEST(Search, GreedyWithTheCacheEqualsGreedyWithoutIt) {
  ModelConfig gemma =
      search_model(AttentionKind::causal);  // its norms, and a window that sentences are longer than
  gemma.norm = NormKind::rms_plus_one;
  gemma.head_norms = gemma.outer_norms = true;
  gemma.window = 6;
  gemma.window_period = 2;
  for (const ModelConfig& config :
       {search_model(AttentionKind::prefix), search_model(AttentionKind::causal), gemma}) {
    const auto decoder = sharp_decoder(config);
    const SearchOptions options = options_with(1);
    const auto all = sources(40);
    const PackedDecoder packed(*decoder, Packing::float32);
    const auto found = run_search(*decoder, options, all);
    const auto found_packed = run_search({*decoder, &packed}, options, all);
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
  const PackedDecoder packed(*decoder, Packing::int8);
  for (const int64_t beam : {1, 4}) {
    SearchOptions options = options_with(beam);
    options.decode.nbest = beam;
    const auto all = sources(100);
    options.decode.batch = 64;
    const auto together = run_search({*decoder, &packed}, options, all);
    options.decode.batch = 1;
    const auto alone = run_search({*decoder, &packed}, options, all);
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
  const PackedDecoder packed(*decoder, Packing::float32);
  const auto all = sources(150);
  const int threads = at::get_num_threads();
  for (const int64_t batch : {12, 64}) {
    SearchOptions options = options_with(3);
    options.decode.batch = batch;
    at::set_num_threads(1);
    const auto alone = run_search({*decoder, &packed}, options, all);
    at::set_num_threads(3);
    const auto together = run_search({*decoder, &packed}, options, all);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(together[i].front().tokens, alone[i].front().tokens) << i;
      EXPECT_EQ(together[i].front().score, alone[i].front().score) << i;
    }
  }
  at::set_num_threads(threads);
}

TEST(Search, WhatAllPromptsBeginWithIsReadOnceAndChangesNothing) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::causal));
  const PackedDecoder packed(*decoder, Packing::float32);
  SearchOptions options = options_with(3);
  options.decode.max_length_ratio = 1e-9;
  options.decode.batch = 7;
  auto all = sources(30);
  options.format.begin = {1, 9, 30, 12, 40};  // examples, say
  const auto shared = run_search({*decoder, &packed}, options, all);
  options.format.begin = {1};
  for (auto& source : all) source.insert(source.begin(), {9, 30, 12, 40});
  const auto repeated = run_search({*decoder, &packed}, options, all);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(shared[i].front().tokens, repeated[i].front().tokens);
    EXPECT_EQ(shared[i].front().score, repeated[i].front().score);  // to the bit
  }
}

TEST(Search, ScoresEqualThoseOfForcedDecoding) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  const PackedDecoder packed(*decoder, Packing::float32);
  SearchOptions options = options_with(5);
  options.decode.nbest = 5;
  const auto all = sources(12);
  const auto found = run_search({*decoder, &packed}, options, all);
  for (size_t i = 0; i < all.size(); ++i) {
    double last = INFINITY;
    for (const Hypothesis& one : found[i]) {
      EXPECT_LE(one.score, last);
      last = one.score;
      if (!one.ended) continue;
      const auto scores = score_pairs(*decoder, options.format, {{all[i], one.tokens}}).front();
      ASSERT_EQ(scores.size(), one.token_log_probabilities.size());
      const auto packed_scores =
          score_pairs({*decoder, &packed}, options.format, {{all[i], one.tokens}}).front();
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

// Beams that can no longer win are dropped on the way; what is found must be what a search finds that drops
// none.
TEST(Search, DroppingBeamsWithoutHopeChangesNothing) {
  ModelConfig config = search_model(AttentionKind::prefix);
  config.vocabulary = 12;
  const auto decoder = sharp_decoder(config);
  SearchOptions options = options_with(4);
  options.decode.early_stop = false;
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

// Beams far behind the best are not asked if those before them leave no place; with as many translations
// wanted as there are beams nothing is without hope either, so that all must be as in a search that asks all.
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

// Every target of up to three tokens, scored one by one: what a wide enough beam must find.
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
  options.decode.early_stop = false;
  options.decode.max_length_ratio = 1e-9;
  options.decode.max_length_more = 3;  // tokens, the end among them
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
  options.decode.max_length_more = 30;
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
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(top[i].front().tokens, greedy[i].front().tokens);
}

TEST(Search, ASourceTooLongForTheModelIsRefused) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  EXPECT_THROW(run_search(*decoder, options_with(1), {std::vector<int32_t>(120, 5)}), UserError);
  SearchOptions options = options_with(2);
  options.decode.nbest = 3;
  EXPECT_THROW(run_search(*decoder, options, sources(1)), UserError);
}

TEST(Search, AnErrorInOneWorkerEndsAllOfThem) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  const PackedDecoder packed(*decoder, Packing::float32);
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  int64_t asked = 0;
  const NextRequest next = [&](bool) -> std::optional<SearchRequest> {
    const size_t length = asked == 40 ? 200 : 5;  // 200 is more than the model has positions
    return asked == 100'000 ? std::nullopt
                            : std::optional(SearchRequest{asked++, std::vector<int32_t>(length, 7)});
  };
  EXPECT_THROW(search({*decoder, &packed}, options_with(2), next, [](int64_t, auto) {}), UserError);
  EXPECT_LT(asked, 1000);
  at::set_num_threads(threads);
}

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

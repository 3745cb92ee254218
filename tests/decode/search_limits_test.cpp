// Lengths, repetitions and forbidden tokens of a search, with a model that prefers tokens in a fixed order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "decode/search_helpers.h"
#include "decode/small_translator.h"

namespace calque {
namespace {

using testing::ElementsAre;

// Prefers 10, then 11, 12 …
std::vector<int32_t> best_of(const SearchOptions& options, size_t source_tokens = 4,
                             const std::vector<int32_t>& prefix = {}, int64_t context_length = 64) {
  const auto decoder = stubborn_decoder(40, 10, context_length);
  const auto found = run_search(*decoder, options, {std::vector<int32_t>(source_tokens, 5)}, prefix).front();
  EXPECT_FALSE(found.front().ended);  // cut off at the limit
  return found.front().tokens;
}

}  // namespace

TEST(SearchLimits, ATranslationIsCutOffAtItsLimit) {
  SearchOptions options = options_with(1);
  options.decode.max_length_ratio = 1.5;
  options.decode.max_length_extra = 3;
  for (const int64_t beam : {1, 3}) {
    options.decode.beam = beam;
    EXPECT_EQ(best_of(options).size(), 9U);                   // 1.5 · 4 + 3
    EXPECT_EQ(best_of(options, 5).size(), 10U);               // 7.5 is rounded down
    EXPECT_EQ(best_of(options, 4, {20, 21}).size(), 11U);     // beside a forced prefix
    EXPECT_EQ(best_of(options, 4, {}, 10).size(), 4U);        // <s>, 4 tokens, <sep>: 4 of 10 are left
    EXPECT_EQ(best_of(options, 4, {20, 21}, 10).size(), 4U);  // and 2 with the prefix
    EXPECT_EQ(best_of(options, 7, {}, 10).size(), 1U);
    EXPECT_THROW(best_of(options, 8, {}, 10), UserError);
  }
  const ModelConfig model = tiny_config();  // a context of 64
  EXPECT_EQ(longest_source(model, {{1}, {3}, 2}), 31);
  EXPECT_EQ(longest_source(model, {std::vector<int32_t>(63, 1), {3}, 2}), 1);
}

TEST(SearchLimits, NoNgramIsRepeated) {
  SearchOptions options = options_with(1);
  options.decode.max_length_ratio = 0.01;
  options.decode.max_length_extra = 8;
  EXPECT_THAT(best_of(options), ElementsAre(10, 10, 10, 10, 10, 10, 10, 10));
  options.decode.no_repeat_ngram = 1;
  EXPECT_THAT(best_of(options), ElementsAre(10, 11, 12, 13, 14, 15, 16, 17));
  options.decode.no_repeat_ngram = 2;
  EXPECT_THAT(best_of(options), ElementsAre(10, 10, 11, 10, 12, 10, 13, 10));
  EXPECT_THAT(best_of(options, 4, {10, 10}), ElementsAre(10, 10, 11, 10, 12, 10, 13, 10, 14, 10));
  options.decode.no_repeat_ngram = 3;
  EXPECT_THAT(best_of(options), ElementsAre(10, 10, 10, 11, 10, 10, 12, 10));
  options.decode.sample = true;
  options.decode.top_k = 1;  // the best that is allowed
  EXPECT_THAT(best_of(options), ElementsAre(10, 10, 10, 11, 10, 10, 12, 10));
  options.decode.no_repeat_ngram = 1;
  options.forbidden = {0, 1, 3, 10, 12};
  EXPECT_THAT(best_of(options), ElementsAre(11, 13, 14, 15, 16, 17, 18, 19));
  options.decode.sample = false;
  EXPECT_THAT(best_of(options), ElementsAre(11, 13, 14, 15, 16, 17, 18, 19));
}

TEST(SearchLimits, SamplesAreSortedAndAsManyAsAskedFor) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix), 5, 4);
  SearchOptions options = options_with(1);
  options.decode.sample = true;
  options.decode.nbest = 6;
  for (const auto& found : run_search(*decoder, options, sources(10))) {
    ASSERT_EQ(found.size(), 6U);
    std::set<std::vector<int32_t>> different;
    for (size_t i = 0; i < found.size(); ++i) {
      different.insert(found[i].tokens);
      if (i > 0) {
        EXPECT_GE(found[i - 1].score, found[i].score);
      }
    }
    EXPECT_GT(different.size(), 2U);
  }
}

// What an exception left unfinished is gone in the next run.
TEST(SearchLimits, ASearchRunsAgainAfterAnError) {
  const auto decoder = sharp_decoder(search_model(AttentionKind::prefix));
  const auto all = sources(6);
  const SearchOptions options = options_with(2);
  const auto expected = run_search(*decoder, options, all);
  Search search(*decoder, options);
  size_t at = 0;
  EXPECT_THROW(search.run(
                   [&](bool) -> std::optional<SearchRequest> {
                     return SearchRequest{static_cast<int64_t>(100 + at),
                                          at++ < 3 ? all[at] : std::vector<int32_t>(120, 5)};
                   },
                   [](int64_t, auto) {}),
               UserError);
  at = 0;
  std::vector<int64_t> done;
  search.run(
      [&](bool) {
        return at < all.size() ? std::optional(SearchRequest{static_cast<int64_t>(at), all[at++]})
                               : std::nullopt;
      },
      [&](int64_t id, const std::vector<Hypothesis>& found) {
        done.push_back(id);
        ASSERT_LT(id, 6);
        EXPECT_EQ(found.front().tokens, expected[static_cast<size_t>(id)].front().tokens);
      });
  EXPECT_EQ(done.size(), 6U);
  EXPECT_EQ(Hypothesis{}.score + Hypothesis{}.log_probability, 0);
  EXPECT_TRUE(Hypothesis{}.ended);
  EXPECT_EQ(SearchRequest{}.id, 0);
}

}  // namespace calque

#include "calque/metrics/text_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"

namespace calque {

TEST(TextScores, MetricsAreFoundByName) {
  EXPECT_EQ(make_metric("bleu", {})->name(), "BLEU");
  EXPECT_EQ(make_metric("chrf", {})->name(), "chrF2");
  EXPECT_EQ(make_metric("ter", {})->name(), "TER");
  EXPECT_THAT([] { make_metric("blue", {}); },
              testing::ThrowsMessage<UserError>("blue: no such metric; did you mean bleu?"));
}

TEST(TextScores, AsJsonAndTextTheyHaveEverythingThatSacrebleuShows) {
  const ScoredText text = {{"a b c d e", "a b"}, {{"a b c d f", "a"}, {"a c", "a b"}}};
  ScoringOptions options;
  options.metrics = {"ter", "bleu"};
  options.resamples = 0;
  const TextScores scores = score_text(text, options);
  EXPECT_EQ(scores.sentences, 2);
  ASSERT_NE(scores.find("ter"), nullptr);
  EXPECT_EQ(scores.find("chrf"), nullptr);
  // One edit of 3 words and none of 2: the mean lengths of the two references.
  EXPECT_NEAR(scores.find("ter")->score, 20, 1e-9);
  EXPECT_EQ(scores.find("ter")->statistics, (std::vector<Statistics>{{1, 3}, {0, 2}}));
  EXPECT_EQ(
      scores.to_json()["ter"],
      nlohmann::json({{"name", "TER"},
                      {"score", 20.0},
                      {"low", 20.0},
                      {"high", 20.0},
                      {"mean", 20.0},
                      {"signature", "nrefs:2|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0"}}));
  EXPECT_EQ(scores.to_json()["sentences"], 2);
  EXPECT_THAT(scores.to_json()["bleu"]["details"].get<std::string>(), testing::StartsWith("85.7/"));
  EXPECT_THAT(
      scores.to_text(),
      testing::StartsWith("TER|nrefs:2|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0 = 20.00\n"
                          "BLEU|nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = "));
  options.resamples = 1;  // one resample is no interval
  EXPECT_EQ(score_text(text, options).to_text(), scores.to_text());
  options.resamples = 2;
  options.seed = 5;
  EXPECT_THAT(score_text(text, options).to_text(), testing::HasSubstr("TER|nrefs:2|bs:2|seed:5|"));
  EXPECT_THAT(score_text(text, options).to_text(), testing::HasSubstr(" (μ = "));
  EXPECT_EQ(MetricScore{}.score, 0);
  EXPECT_EQ(TextScores{}.sentences, 0);
  EXPECT_EQ(TextScores{}.to_json().dump(), R"({"sentences":0})");
}

TEST(TextScores, EverySentenceNeedsAReference) {
  EXPECT_THROW(score_text({{"a", "b"}, {{"a"}, {}}}, {}), UserError);
  EXPECT_THROW(score_text({{"a"}, {{"a"}, {"b"}}}, {}), UserError);
  EXPECT_TRUE(sum_of({}).empty());
}

// sacrebleu 2.6.0: BLEU(effective_order=True).sentence_score; without it, three words have no 4-grams: 0.
TEST(TextScores, TheBleuOfASentenceUsesOnlyTheOrdersItIsLongEnoughFor) {
  const auto scores = sentence_bleu({{"a b c", "x"}, {{"a b c"}, {"y"}}}, {});
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_NEAR(scores[0], 100, 1e-9);
  EXPECT_EQ(scores[1], 0);
}

}  // namespace calque

#include "calque/metrics/bleu.h"

#include <gtest/gtest.h>

#include "calque/metrics/chrf.h"

namespace calque {
namespace {

double score_of(const Metric& metric, const char* hypothesis, const char* reference) {
  return metric.score(metric.count(hypothesis, std::vector<std::string>{reference}));
}

}  // namespace

// The expected values of this file are those of sacrebleu 2.6.0.
TEST(Bleu, SmoothingAndItsValueFollowTheOptions) {
  const auto expect = [](const BleuOptions& options, const char* signature, double score) {
    const auto metric = make_bleu(options);
    EXPECT_EQ(metric->signature(), signature);
    EXPECT_NEAR(score_of(*metric, "the cat sat down", "the cat is down now"), score, 1e-6) << signature;
  };
  BleuOptions options;
  options.effective_order = true;
  options.smoothing = BleuSmoothing::floor;
  options.smoothing_value = 0.5;
  expect(options, "case:mixed|eff:yes|tok:13a|smooth:floor[0.50]", 32.744539);
  options.smoothing = BleuSmoothing::add_k;
  options.smoothing_value = 2;
  expect(options, "case:mixed|eff:yes|tok:13a|smooth:add-k[2.00]", 48.467341);
  options.smoothing = BleuSmoothing::none;
  expect(options, "case:mixed|eff:yes|tok:13a|smooth:none", 0);
  options = {};
  EXPECT_FALSE(options.effective_order || options.lowercase);
  options.smoothing = BleuSmoothing::floor;
  expect(options, "case:mixed|eff:no|tok:13a|smooth:floor[0.10]", 14.643803);
  options = {};
  options.lowercase = true;
  expect(options, "case:lc|eff:no|tok:13a|smooth:exp", 27.534766);
}

TEST(Bleu, TheReferenceOfTheNearestLengthCountsAndTheShorterOfTwo) {
  const auto metric = make_bleu({});
  const auto details = [&](const char* hypothesis, const std::vector<std::string>& references) {
    return metric->details(metric->count(hypothesis, references));
  };
  const char* expected = "100.0/100.0/100.0/100.0 (BP = 1.000 ratio = 1.333 hyp_len = 4 ref_len = 3)";
  EXPECT_EQ(details("a b c d", {"a b c", "a b c d e"}), expected);
  EXPECT_EQ(details("a b c d", {"a b c d e", "a b c"}), expected);
  EXPECT_EQ(details("a b c d", {"a b c d e f", "a b c d e", "a"}),
            "100.0/100.0/100.0/100.0 (BP = 0.779 ratio = 0.800 hyp_len = 4 ref_len = 5)");
  EXPECT_EQ(details("", {""}), "0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 0.000 hyp_len = 0 ref_len = 0)");
  EXPECT_EQ(details("a", {"b"}), "0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 1.000 hyp_len = 1 ref_len = 1)");
}

TEST(Bleu, WordsAreThoseOfTheTokenizer) {
  const char* entities = "a-\nb <skipped>c &quot;d&quot; &amp; &lt;e&gt;";
  const char* marks = "1,000.5 3-4 a-b x.y, «z» €5 [a]{b}~ |c^d_e`f (g)*+ :;<=>?@ /";
  EXPECT_EQ(bleu_words(entities, BleuTokenizer::v13a), "ab c \" d \" & < e >");
  EXPECT_EQ(bleu_words(marks, BleuTokenizer::v13a),
            "1,000.5 3 - 4 a-b x . y , «z» €5 [ a ] { b } ~ | c ^ d _ e ` f ( g ) * + : ; < = > ? @ /");
  EXPECT_EQ(bleu_words(marks, BleuTokenizer::intl),
            "1,000.5 3-4 a - b x . y , « z » € 5 [ a ] { b } ~ | c ^ d _ e ` f ( g ) * + : ; < = > ? @ /");
  EXPECT_EQ(bleu_words("ab é", BleuTokenizer::character), "a b é");
  EXPECT_EQ(bleu_words("a,b  c.", BleuTokenizer::none), "a,b c.");
  EXPECT_EQ(bleu_words("", BleuTokenizer::v13a), "");
}

TEST(Chrf, OrdersAndBetaFollowTheOptions) {
  const auto expect = [](const ChrfOptions& options, const char* name, const char* signature, double score) {
    const auto metric = make_chrf(options);
    EXPECT_EQ(metric->name(), name);
    EXPECT_EQ(metric->signature(), signature);
    EXPECT_NEAR(score_of(*metric, "The (cat) sat, down!", "the cat is (down) now."), score, 1e-6) << name;
    EXPECT_TRUE(metric->higher_is_better());
    EXPECT_EQ(metric->details({}), "");
  };
  expect({.character_order = 3, .word_order = 1, .beta = 1}, "chrF1+",
         "case:mixed|eff:yes|nc:3|nw:1|space:no", 36.075355);
  expect({.character_order = 2, .beta = 3}, "chrF3", "case:mixed|eff:yes|nc:2|nw:0|space:no", 54.064341);
  expect({.word_order = 3}, "chrF2+++", "case:mixed|eff:yes|nc:6|nw:3|space:no", 16.531686);
}

}  // namespace calque

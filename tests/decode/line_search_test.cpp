#include "calque/decode/line_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decode/small_translator.h"

namespace calque {
namespace {

using testing::ElementsAre;

class LineSearchTest : public testing::Test {
 protected:
  LineSearch search(const std::string& line, const std::string& prefix = "") {
    return {translator_, line, prefix, std::make_shared<const DecodeConfig>(translator_.config())};
  }
  std::vector<int32_t> ids(const std::string& text) { return translator_.tokenizer().encode(text); }
  Hypothesis found(const std::string& text, double score, bool ended = true) {
    return {ids(text), {}, 2 * score, score, ended};
  }

  const Translator translator_ = make_translator(8);
};

}  // namespace

TEST_F(LineSearchTest, PartsAreRequestedInOrderAndJoined) {
  LineSearch line = search("Le chat dort. Il ne fait rien. Il pleut.", "The");
  const SearchRequest first = line.next(10), second = line.next(11), third = line.next(12);
  EXPECT_FALSE(line.has_next());
  EXPECT_FALSE(line.is_done());
  EXPECT_EQ(first.id, 10);
  EXPECT_EQ(first.source, ids("Le chat dort."));
  EXPECT_EQ(first.prefix, ids("The"));
  EXPECT_EQ(second.source, ids("Il ne fait rien."));
  EXPECT_TRUE(second.prefix.empty() && third.prefix.empty());
  EXPECT_EQ(first.decode->no_repeat_ngram, 0);
  line.accept(11, {found("b", -2), found("bb", -3)});
  line.accept(12, {found("c", -4, false), found("cc", -5), found("ccc", -6)});
  EXPECT_FALSE(line.is_done());
  line.accept(10, {found("a", -1)});
  EXPECT_TRUE(line.is_done());
  const Translation translation = line.finish();
  EXPECT_THAT(translation.sources, ElementsAre("Le chat dort.", "Il ne fait rien.", "Il pleut."));
  ASSERT_EQ(translation.best.size(), 3U);  // where a part has fewer, its last
  EXPECT_EQ(translation.text(), "a b c");
  EXPECT_EQ(translation.best[1].text, "a bb cc");
  EXPECT_EQ(translation.best[2].text, "a bb ccc");
  EXPECT_EQ(translation.best[0].score, -7);
  EXPECT_EQ(translation.best[0].log_probability, -14);
  EXPECT_EQ(translation.best[2].score, -10);
  EXPECT_FALSE(translation.best[0].complete);  // a part was cut off
  EXPECT_TRUE(translation.best[1].complete);
  EXPECT_EQ(translation.best[0].parts.size(), 3U);
  EXPECT_FALSE(translation.looped || translation.copied);
}

TEST_F(LineSearchTest, ShortLinesAreSplitIntoSentencesWhereThatIsConfigured) {
  auto config = std::make_shared<DecodeConfig>(translator_.config());
  config->split_tokens = 48;
  for (const bool split : {false, true}) {
    config->split_sentences = split;
    LineSearch line(translator_, "Il pleut. Il dort.", "", config);
    EXPECT_EQ(line.next(0).source, ids(split ? "Il pleut." : "Il pleut. Il dort."));
    EXPECT_EQ(line.has_next(), split);
  }
}

TEST_F(LineSearchTest, TheSameTextComesOnce) {
  LineSearch line = search("Oui.");
  line.next(0);
  line.accept(0, {found("yes", -1), found("yes", -2), found("no", -3)});
  EXPECT_EQ(line.finish().best.size(), 2U);
}

TEST_F(LineSearchTest, AnEmptyLineIsDoneAtOnce) {
  const LineSearch line = search(" \t");
  EXPECT_TRUE(line.is_done());
  EXPECT_FALSE(line.has_next());
  const Translation translation = line.finish();
  ASSERT_EQ(translation.best.size(), 1U);
  EXPECT_EQ(translation.text(), "");
  EXPECT_TRUE(translation.best[0].complete);
  EXPECT_EQ(translation.best[0].score, 0);
  EXPECT_EQ(translation.best[0].log_probability, 0);
  EXPECT_TRUE(translation.sources.empty());
}

TEST_F(LineSearchTest, FiveRepetitionsOfUpToEightTokensAreALoop) {
  const auto loops = [&](size_t period, size_t tokens) {
    LineSearch line = search("Oui.");
    line.next(0);
    Hypothesis one;
    for (size_t i = 0; i < tokens; ++i) one.tokens.push_back(static_cast<int32_t>(300 + i % period));
    line.accept(0, {one});
    EXPECT_EQ(line.finish().looped, line.has_next());
    return line.has_next();
  };
  EXPECT_TRUE(loops(1, 5));
  EXPECT_FALSE(loops(1, 4));
  EXPECT_TRUE(loops(2, 10));
  EXPECT_FALSE(loops(2, 9));
  EXPECT_TRUE(loops(8, 40));
  EXPECT_FALSE(loops(8, 39));
  EXPECT_FALSE(loops(9, 45));
}

TEST_F(LineSearchTest, ALoopNeedNotReachTheEndButTheSourceMayRepeatItself) {
  const auto loops = [&](const std::string& source, size_t repetitions, bool ended) {
    auto config = std::make_shared<DecodeConfig>(translator_.config());
    config->split_tokens = 200;
    LineSearch line(translator_, source, "", config);
    line.next(0);
    Hypothesis one;
    one.tokens = {310, 311};
    one.tokens.insert(one.tokens.end(), repetitions, 300);
    one.tokens.push_back(312);
    one.ended = ended;
    line.accept(0, {one});
    return line.has_next();
  };
  EXPECT_TRUE(loops("Oui.", 5, true));
  EXPECT_FALSE(loops("Oui.", 4, true));
  std::string laughter = "Ha";
  for (int i = 1; i < 12; ++i) laughter += " ha";
  EXPECT_FALSE(loops(laughter, 12, true));
  EXPECT_TRUE(loops(laughter, 12, false));  // cut off at the length limit
  EXPECT_TRUE(loops(laughter, 40, true));
}

TEST_F(LineSearchTest, OnlyWhatIsTooLongForTheModelIsCopied) {
  auto config = std::make_shared<DecodeConfig>(translator_.config());
  config->split_tokens = 1;
  LineSearch line(translator_, "bonjour anticonstitutionnellement", "", config);
  EXPECT_TRUE(line.has_next());
  EXPECT_FALSE(line.finish().copied);
}

TEST_F(LineSearchTest, ALoopIsAskedForOnceMoreAndThenTaken) {
  LineSearch line = search("Oui.");
  line.next(0);
  Hypothesis loop;
  loop.tokens.assign(20, 300);
  line.accept(0, {loop});
  const SearchRequest again = line.next(1);
  EXPECT_EQ(again.decode->no_repeat_ngram, 3);
  EXPECT_EQ(again.decode->beam, 2);
  EXPECT_EQ(again.source, ids("Oui."));
  line.accept(1, {loop});
  EXPECT_TRUE(line.is_done());
  EXPECT_TRUE(line.finish().looped);
  EXPECT_EQ(line.finish().best[0].parts[0].tokens.size(), 20U);
}

TEST_F(LineSearchTest, TheTextSoFarEndsWithThePartInProgress) {
  LineSearch line = search("Le chat dort. Il ne fait rien. Il pleut.");
  for (const int64_t id : {0, 1, 2}) line.next(id);
  EXPECT_EQ(line.text_so_far(), "");
  line.set_progress(0, ids("a"));
  EXPECT_EQ(line.text_so_far(), "a");
  line.accept(0, {found("a b", -1), found("x", -2)});
  line.set_progress(1, ids("c"));
  line.set_progress(2, ids("later"));
  EXPECT_EQ(line.text_so_far(), "a b c");
  line.accept(1, {found("c d", -1)});
  EXPECT_EQ(line.text_so_far(), "a b c d later");
}

TEST_F(LineSearchTest, ACopiedWordIsItsOwnTranslation) {
  const std::string word(600, 'a');
  LineSearch line = search("Voici " + word + " ici.");
  line.next(0);
  line.next(1);
  EXPECT_FALSE(line.has_next());
  line.accept(0, {found("here is", -1)});
  EXPECT_EQ(line.text_so_far(), "here is " + word);
  line.accept(1, {found("here", -2)});
  const Translation translation = line.finish();
  EXPECT_EQ(translation.text(), "here is " + word + " here");
  EXPECT_TRUE(translation.copied);
  EXPECT_EQ(translation.best[0].score, -3);
  EXPECT_TRUE(translation.best[0].complete);
}

}  // namespace calque

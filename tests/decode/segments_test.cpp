#include "calque/decode/segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace calque {

using testing::ElementsAre;

TEST(Segments, InitialsAndLowerCaseDoNotEndASentence) {
  EXPECT_THAT(split_sentences("Voici J. Martin. Il dort."), ElementsAre("Voici J. Martin.", "Il dort."));
  EXPECT_THAT(split_sentences("J. Martin dort. Il rêve."), ElementsAre("J. Martin dort.", "Il rêve."));
  EXPECT_THAT(split_sentences("La vitamine AB. Il dort."), ElementsAre("La vitamine AB.", "Il dort."));
  EXPECT_THAT(split_sentences("Le numéro 7. Il dort."), ElementsAre("Le numéro 7.", "Il dort."));
  EXPECT_THAT(split_sentences("Quoi ? dit-il. Rien."), ElementsAre("Quoi ? dit-il.", "Rien."));
  EXPECT_THAT(split_sentences("Quoi ? Édith rit."), ElementsAre("Quoi ?", "Édith rit."));
  EXPECT_THAT(split_sentences("C'est J."), ElementsAre("C'est J."));
}

TEST(Segments, ClosingMarksBelongToTheSentenceBeforeThem) {
  EXPECT_THAT(split_sentences("« Oui. » Elle part."), ElementsAre("« Oui. »", "Elle part."));
  EXPECT_THAT(split_sentences("Ah ! ! ! Elle part."), ElementsAre("Ah ! ! !", "Elle part."));
  EXPECT_THAT(split_sentences("Ah ? ! Elle part. »"), ElementsAre("Ah ? !", "Elle part. »"));
  EXPECT_THAT(split_sentences("🙂 Il dort. 🙂 Elle lit."),
              ElementsAre("🙂 Il dort.", "🙂 Elle lit."));
}

TEST(Segments, AClauseNearEitherEndIsNotSplitThere) {
  // A text of 40 characters without spaces, but for one behind a comma and one near the middle.
  const auto split = [](size_t clause, size_t word, char mark = ',') {
    std::string text(40, 'a');
    text[clause - 1] = mark;
    text[clause] = text[word] = ' ';
    std::vector<size_t> sizes;
    for (const std::string& part : split_text(text, [](std::string_view part) { return part.size() < 40; }))
      sizes.push_back(part.size());
    return sizes.empty() ? 0 : sizes.front();
  };
  EXPECT_EQ(split(5, 22), 22U);  // an eighth of 40
  EXPECT_EQ(split(6, 22), 6U);
  EXPECT_EQ(split(34, 22), 34U);
  EXPECT_EQ(split(35, 22), 22U);
  for (const char mark : {',', ';', ':'}) EXPECT_EQ(split(10, 22, mark), 10U) << mark;
  for (const char mark : {'.', '-', 'x'}) EXPECT_EQ(split(10, 22, mark), 22U) << mark;
}

TEST(Segments, TheCutNearestToTheMiddleIsTaken) {
  const auto halves = [](const std::string& text) {
    return split_text(text, [&](std::string_view part) { return part.size() < text.size(); });
  };
  EXPECT_THAT(halves("aa bb cc dd ee"), ElementsAre("aa bb cc", "dd ee"));
  EXPECT_THAT(halves("aaaaa b ccccc"), ElementsAre("aaaaa", "b ccccc"));  // equally near: the first
  EXPECT_THAT(halves("a bb, cc dd, ee ff, g"), ElementsAre("a bb, cc dd,", "ee ff, g"));
  EXPECT_THAT(halves("aaa bbb – ccc ddd"), ElementsAre("aaa bbb –", "ccc ddd"));
  EXPECT_THAT(halves("aaa bbb — ccc ddd"), ElementsAre("aaa bbb —", "ccc ddd"));
  EXPECT_THAT(halves("abcdef"), ElementsAre("abcdef"));  // a single word is left whole
  EXPECT_THAT(halves("a bcdefg"), ElementsAre("a", "bcdefg"));
  EXPECT_THAT(halves("bcdefg a"), ElementsAre("bcdefg", "a"));
}

}  // namespace calque

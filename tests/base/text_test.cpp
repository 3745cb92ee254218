#include "calque/base/text.h"

#include <gtest/gtest.h>

namespace calque {

TEST(Text, InvalidUtf8IsFoundAtItsFirstByte) {
  EXPECT_FALSE(find_invalid_utf8("Où vas-tu ? 🙂 漢字"));
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2u);
  EXPECT_EQ(find_invalid_utf8("\xc3"), 0u);                         // cut off
  EXPECT_EQ(find_invalid_utf8("a\xc0\xaf"), 1u);                    // overlong slash
  EXPECT_EQ(find_invalid_utf8("\xe0\x80\xaf"), 0u);                 // overlong form of three bytes
  EXPECT_EQ(find_invalid_utf8("x\xed\xa0\x80"), 1u);                // surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0u);             // past U+10FFFF
  EXPECT_FALSE(find_invalid_utf8("\xf4\x8f\xbf\xbf\xef\xbf\xbd"));  // U+10FFFF, U+FFFD
}

TEST(Text, ReadsCodePointsInOrder) {
  const std::string text = "aé漢🙂";
  size_t at = 0;
  EXPECT_EQ(next_code_point(text, at), U'a');
  EXPECT_EQ(next_code_point(text, at), U'é');
  EXPECT_EQ(next_code_point(text, at), U'漢');
  EXPECT_EQ(next_code_point(text, at), U'🙂');
  EXPECT_EQ(at, text.size());
}

TEST(Text, WidthIsInColumnsNotBytes) {
  EXPECT_EQ(display_width("été"), 3u);
  EXPECT_EQ(display_width("漢字"), 4u);
  EXPECT_EQ(display_width("e\u0301"), 1u);
}

TEST(Text, ShorteningKeepsWholeCharactersAndMarksTheCut) {
  EXPECT_EQ(shorten("court", 10), "court");
  EXPECT_EQ(shorten("éééééé", 4), "ééé…");
  EXPECT_EQ(shorten("a\tb\nc", 10), "a b c");
  EXPECT_EQ(shorten("a\xff"
                    "b",
                    10),
            "a\uFFFD"
            "b");
  EXPECT_EQ(shorten("漢字漢字", 5), "漢字…");
}

TEST(Text, SuggestsTheMostSimilarName) {
  const std::vector<std::string> names = {"learning_rate", "batch_tokens", "steps"};
  EXPECT_EQ(nearest("lerning_rate", names), "learning_rate");
  EXPECT_EQ(nearest("step", names), "steps");
  EXPECT_EQ(nearest("lr_rate", names), "learning_rate");
  EXPECT_FALSE(nearest("colour", names));
  EXPECT_EQ(did_you_mean("stps", names), "; did you mean steps?");
  EXPECT_EQ(did_you_mean("zzzzzzzz", names), "");
}

}  // namespace calque

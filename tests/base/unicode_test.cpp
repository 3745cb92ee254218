#include "calque/base/unicode.h"

#include <gtest/gtest.h>

namespace calque {

TEST(Unicode, CleanTextHasSingleSpacesAndNoControlCharacters) {
  EXPECT_EQ(clean_text("Quoi\u00a0?"), "Quoi ?");
  EXPECT_EQ(clean_text("« Oui\u202f! »"), "« Oui ! »");
  EXPECT_EQ(clean_text("deux  blancs"), "deux blancs");
  EXPECT_EQ(clean_text("\uFEFFLe chat\uFEFF."), "Le chat.");  // byte order marks
  EXPECT_EQ(clean_text(" \t au bord \u3000\r"), "au bord");
  EXPECT_EQ(clean_text("a\x01"
                       "b\x7f"
                       "c\u0085d"),
            "a b c d");
  EXPECT_EQ(clean_text("a\xff"
                       "b"),
            "a\uFFFDb");
  EXPECT_EQ(clean_text(""), "");
  EXPECT_EQ(clean_text("\u2003"), "");
}

TEST(Unicode, CleanTextKeepsWhatIsClean) {
  for (const char* text : {"Où est l’été ?", "a", "漢字", "naïve café – 20 €", "e\u0301", "\U0001F600 ok"})
    EXPECT_EQ(clean_text(text), text);
}

}  // namespace calque

#include "calque/data/sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "data/small_corpus.h"

namespace calque {
namespace {

using Ids = std::vector<int32_t>;

const Tokenizer& byte_level() {
  static const Tokenizer tokenizer =
      Tokenizer::load(source_folder() / "tests/golden/tokenizer/byte-level.json");
  return tokenizer;
}

Ids joined(std::initializer_list<Ids> parts) {
  Ids all;
  for (const Ids& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string prompt_refusal(const std::string& prompt) {
  try {
    check_prompt(prompt);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST(SequenceFormat, WithoutAPromptTheSeparatorTokenStandsBetweenSourceAndTarget) {
  const SequenceFormat format = pair_format(small_tokenizer(), "");
  EXPECT_EQ(format.begin, Ids{1});
  EXPECT_EQ(format.separator, Ids{3});
  EXPECT_EQ(format.end, 2);
  EXPECT_EQ(format.rows(10, 7), 19);
}

TEST(SequenceFormat, WithoutASeparatorTokenANewlineStandsBetweenThem) {
  ASSERT_FALSE(byte_level().separator_id());
  const SequenceFormat format = pair_format(byte_level(), "");
  EXPECT_EQ(format.begin, Ids{1});
  EXPECT_EQ(format.separator, byte_level().encode("\n"));
  EXPECT_EQ(format.end, 2);
}

TEST(SequenceFormat, APromptsTextSurroundsTheSource) {
  const Tokenizer& tokenizer = small_tokenizer();
  const SequenceFormat format = pair_format(tokenizer, "le chat: {source} mange {target}");
  EXPECT_EQ(format.begin, joined({{1}, tokenizer.encode("le chat: ")}));
  EXPECT_EQ(format.separator, tokenizer.encode(" mange "));
  EXPECT_EQ(format.end, 2);
  EXPECT_EQ(pair_format(tokenizer, "{source} x {target}").begin, Ids{1});
  // Its normalisation removes a newline, so its byte token is used.
  const Tokenizer golden = Tokenizer::load(source_folder() / "tests/golden/tokenizer/bpe.model");
  ASSERT_TRUE(golden.encode("\n").empty());
  const int32_t newline = golden.find("<0x0A>").value();
  EXPECT_EQ(pair_format(golden, "{source}\n{target}").separator, Ids{newline});
  EXPECT_EQ(pair_format(golden, "\n{source}\n{target}").begin, (Ids{golden.begin_id(), newline}));
  EXPECT_THROW(pair_format(tokenizer, "{source}{target}"), UserError);
}

TEST(SequenceFormat, APromptNeedsTheSourceOnceAndTheTargetAtTheEnd) {
  for (const char* good : {"", "{source} {target}", "a {source} b {target}", "{source}\n{target}"})
    EXPECT_EQ(prompt_refusal(good), "accepted") << good;
  for (const char* bad : {"{source}", "{target}", "text", "{target} {source}", "{source} {source} {target}",
                          "{source} {target}.", "{source} {target} ", "{source} {target} {target}"})
    EXPECT_THAT(prompt_refusal(bad), testing::HasSubstr("must contain {source} once")) << bad;
}

TEST(SequenceFormat, ExamplesComeFirstAndALineEndsTheTarget) {
  const Tokenizer& tokenizer = byte_level();
  const auto encode = [&](const char* text) { return tokenizer.encode(text); };
  const SequenceFormat format =
      example_format(tokenizer, "F: {source} E: {target}", {{"un", "one"}, {"deux", "two"}});
  EXPECT_EQ(format.begin, joined({{1},
                                  encode("F: "),
                                  encode("un"),
                                  encode(" E: "),
                                  encode("one"),
                                  encode("\n"),
                                  encode("F: "),
                                  encode("deux"),
                                  encode(" E: "),
                                  encode("two"),
                                  encode("\n"),
                                  encode("F: ")}));
  EXPECT_EQ(format.separator, encode(" E: "));
  EXPECT_EQ(Ids{format.end}, encode("\n"));
}

TEST(SequenceFormat, PlainTextHasNoSeparator) {
  const SequenceFormat format = text_format(byte_level());
  EXPECT_EQ(format.begin, Ids{1});
  EXPECT_TRUE(format.separator.empty());
  EXPECT_EQ(format.end, 2);
  EXPECT_EQ(SequenceFormat{}.end, 0);
}

}  // namespace calque

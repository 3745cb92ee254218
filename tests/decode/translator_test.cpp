#include "calque/decode/translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/text.h"
#include "calque/decode/attention_map.h"
#include "calque/decode/segments.h"
#include "calque/model/decoder.h"
#include "temporary_folder.h"

namespace calque {
namespace {

using testing::ElementsAre;

Translator make_translator(int64_t split_tokens = 48) {
  const Tokenizer tokenizer =
      Tokenizer::load(std::string(CALQUE_SOURCE_FOLDER) + "/tests/golden/tokenizer/bpe.model");
  ModelConfig model;
  model.layers = 2;
  model.width = 32;
  model.heads = 2;
  model.feed_forward_width = 48;
  model.max_positions = 128;
  model.vocabulary = tokenizer.size();
  auto decoder = std::make_shared<Decoder>(model);
  decoder->initialise(1);
  decoder->eval();
  DecodeConfig config;
  config.beam = 2;
  config.max_length_ratio = 0.5;
  config.max_length_more = 3;
  config.split_tokens = split_tokens;
  return {decoder, tokenizer, config};
}

}  // namespace

TEST(Segments, SentencesEndWhereAReaderPauses) {
  EXPECT_THAT(split_sentences("Il dort. Elle lit ! Et toi ?"),
              ElementsAre("Il dort.", "Elle lit !", "Et toi ?"));
  EXPECT_THAT(split_sentences("M. Dupont et Mme. Roy sont là. C'est J. Martin."),
              ElementsAre("M. Dupont et Mme. Roy sont là.", "C'est J. Martin."));
  EXPECT_THAT(split_sentences("« Où vas-tu ? » demanda-t-il. « Là. » Puis rien…"),
              ElementsAre("« Où vas-tu ? » demanda-t-il.", "« Là. »", "Puis rien…"));
  EXPECT_THAT(split_sentences("3.14 et www.site.fr restent entiers"),
              ElementsAre("3.14 et www.site.fr restent entiers"));
  EXPECT_THAT(split_sentences("   "), ElementsAre());
}

TEST(Segments, WhatIsTooLongIsCutAtClausesThenWordsThenAnywhereAndNothingIsLost) {
  const auto at_most = [](size_t bytes) {
    return [bytes](std::string_view part) { return part.size() <= bytes; };
  };
  EXPECT_THAT(split_text("un deux trois, quatre cinq six", at_most(20)),
              ElementsAre("un deux trois,", "quatre cinq six"));
  EXPECT_THAT(split_text("un deux trois quatre", at_most(12)), ElementsAre("un deux", "trois quatre"));
  EXPECT_THAT(split_text("abcdéfgh", at_most(5)), ElementsAre("abcd", "éfgh"));
  EXPECT_THAT(split_text("é", at_most(1)), ElementsAre("é"));
  std::string text, joined;
  for (int i = 0; i < 500; ++i)
    text += (i > 0 ? " mot" : "mot") + std::to_string(i) + (i % 9 == 0 ? "," : "");
  for (const std::string& part : split_text(text, at_most(40))) {
    EXPECT_LE(part.size(), 40U);
    joined += (joined.empty() ? "" : " ") + part;
  }
  EXPECT_EQ(joined, text);
}

TEST(Translator, OneLineOutForEachLineInWhateverIsInIt) {
  const Translator translator = make_translator(8);
  std::string long_line;
  for (int i = 0; i < 3000; ++i) long_line += "Le chat dort. ";
  const std::vector<std::string> lines = {"Bonjour.",
                                          "",
                                          "  \t ",
                                          "bad \xff\xfe bytes \xc3",
                                          std::string("nul \0 and bell \a", 15),
                                          long_line.substr(0, 4000),
                                          std::string(500, 'x'),
                                          "🙂 漢字 e\u0301",
                                          "\r",
                                          "Deux phrases ici. Et une autre là, avec une virgule de plus."};
  const auto all = translator.translate_all(lines);
  ASSERT_EQ(all.size(), lines.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(find_invalid_utf8(all[i].text()), std::nullopt) << i;
    EXPECT_EQ(all[i].text().find('\n'), std::string::npos) << i;
    const bool blank = i == 1 || i == 2 || i == 8;
    EXPECT_EQ(all[i].sources.empty(), blank) << i;
    EXPECT_TRUE(!blank || all[i].text().empty()) << i;
  }
  EXPECT_GT(all[5].sources.size(), 100U);
}

TEST(Translator, ALineAloneEqualsTheSameLineAmongOthers) {
  const Translator translator = make_translator();
  const std::vector<std::string> lines = {"Le chat dort.", "Je ne sais pas où il est.", "Merci beaucoup !"};
  const auto all = translator.translate_all(lines);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> shown;
    const Translation alone = translator.translate(lines[i], "", [&](const std::string& text) {
      shown.push_back(text);
      return true;
    });
    EXPECT_EQ(alone.text(), all[i].text());
    EXPECT_FALSE(shown.empty());
  }
}

TEST(Translator, LinesComeOutInOrderAsSoonAsTheyCan) {
  const Translator translator = make_translator();
  // A line at a time, as somebody types: each must be answered before the next is asked for.
  std::vector<std::string> left = {"Un.", "", "Deux.", "Trois."};
  size_t asked = 0;
  std::vector<int64_t> answered;
  translator.translate_lines(
      [&](bool wait) -> std::optional<std::string> {
        if (!wait) return std::nullopt;
        EXPECT_EQ(answered.size(), asked);
        return asked < left.size() ? std::optional(left[asked++]) : std::nullopt;
      },
      [&](int64_t line, const Translation&) { answered.push_back(line); });
  EXPECT_THAT(answered, ElementsAre(0, 1, 2, 3));
}

TEST(Translator, ExamplesAreSeenAndALineEndsTheTranslation) {
  const TemporaryFolder folder;
  Translator translator = make_translator();
  translator.show_examples(folder.write("shots.tsv", "Oui.\tYes.\n"));
  const Tokenizer& tokenizer = translator.tokenizer();
  const SequenceFormat& format = translator.format();
  EXPECT_EQ(tokenizer.piece(format.end), "<0x0A>");
  EXPECT_EQ(std::count(format.begin.begin(), format.begin.end(), format.end), 1);  // behind the example
  const auto seen = [&](const char* text) {
    const auto ids = tokenizer.encode(text);
    return std::search(format.begin.begin(), format.begin.end(), ids.begin(), ids.end()) !=
           format.begin.end();
  };
  EXPECT_TRUE(seen("Oui.") && seen("Yes.") && seen("French:") && !seen("Non."));
  EXPECT_EQ(format.begin.front(), tokenizer.begin_id());
  EXPECT_NE(translator.translate("Le chat dort.").text(),
            make_translator().translate("Le chat dort.").text());
}

TEST(AttentionMap, RowsAreSharesOfTheSourcesWords) {
  const Translator translator = make_translator();
  const auto& tokenizer = translator.tokenizer();
  const auto map =
      map_attention(translator.decoder(), tokenizer, translator.format(),
                    tokenizer.encode("Le petit chat dort."), tokenizer.encode("The little cat sleeps."));
  EXPECT_THAT(map.source, ElementsAre("Le", "petit", "chat", "dort."));
  EXPECT_THAT(map.target, ElementsAre("The", "little", "cat", "sleeps.", "(end)"));
  for (const auto& row : map.weights) {
    double sum = 0;
    for (const double weight : row) sum += weight;
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

}  // namespace calque

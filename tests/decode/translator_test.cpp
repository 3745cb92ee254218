#include "calque/decode/translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/text.h"
#include "calque/decode/attention_map.h"
#include "calque/decode/segments.h"
#include "decode/small_translator.h"

namespace calque {
namespace {

using testing::ElementsAre;

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

TEST(Segments, WhatIsTooLongIsSplitAtClausesThenBetweenWordsAndNothingIsLost) {
  const auto at_most = [](size_t bytes) {
    return [bytes](std::string_view part) { return part.size() <= bytes; };
  };
  EXPECT_THAT(split_text("un deux trois, quatre cinq six", at_most(20)),
              ElementsAre("un deux trois,", "quatre cinq six"));
  EXPECT_THAT(split_text("un deux trois quatre", at_most(12)), ElementsAre("un deux", "trois quatre"));
  EXPECT_THAT(split_text("un abcdéfgh deux", at_most(5)), ElementsAre("un", "abcdéfgh", "deux"));
  std::string text, joined;
  for (int i = 0; i < 500; ++i)
    text += (i > 0 ? " mot" : "mot") + std::to_string(i) + (i % 9 == 0 ? "," : "");
  for (const std::string& part : split_text(text, at_most(40))) {
    EXPECT_LE(part.size(), 40U);
    joined += (joined.empty() ? "" : " ") + part;
  }
  EXPECT_EQ(joined, text);
}

TEST(Segments, LongTextsTakeLinearTime) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "a.";
  EXPECT_EQ(split_sentences(text).size(), 1U);  // quadratic time would take minutes
}

TEST(Translator, EachLineIsSampledByItself) {
  Translator translator = make_translator(8);
  translator.config().sample = true;
  translator.config().temperature = 5;
  const auto all = translator.translate_all(std::vector<std::string>(10, "Le chat dort."));
  EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                          [&](const Translation& one) { return one.text() != all.front().text(); }));
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
  translator.use_examples(folder.write("shots.tsv", "Oui.\tYes.\n"));
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

TEST(Translator, AWordTooLongToBeLanguageIsCopied) {
  const Translator translator = make_translator(16);
  const std::string word(20'000, 'a');
  for (const Translation& translation : {translator.translate("Voici " + word + " ici."),
                                         translator.translate_all({"Voici " + word + " ici."}).front()}) {
    EXPECT_NE(translation.text().find(word), std::string::npos);
    EXPECT_TRUE(translation.copied);
    EXPECT_EQ(translation.best.front().parts.size(), translation.sources.size());
  }
  EXPECT_EQ(translator.translate(word).text(), word);
}

TEST(Translator, ALoopIsTriedAgainWithoutRepetition) {
  // A model whose output does not depend on its input repeats one token for ever.
  const Tokenizer tokenizer =
      Tokenizer::load(std::string(CALQUE_SOURCE_FOLDER) + "/tests/golden/tokenizer/bpe.model");
  ModelConfig config = tiny_config(tokenizer.size());
  config.architecture = Architecture::calque;
  config.norm = NormKind::layer;
  config.tied_embeddings = false;
  const auto decoder = make_decoder(config);
  {
    const torch::NoGradGuard no_gradients;
    decoder->norm->weight.zero_();
    decoder->norm->bias.fill_(1);
    decoder->output.zero_();
    decoder->output[300].fill_(1);
  }
  decoder->pack(WeightPrecision::float32);
  DecodeConfig greedy;
  greedy.beam = 1;
  const Translator translator(decoder, tokenizer, greedy);
  for (const Translation& translation :
       {translator.translate("Le chat dort."), translator.translate_all({"Le chat dort."}).front()}) {
    EXPECT_TRUE(translation.looped);
    const auto& tokens = translation.best.front().parts.front().tokens;
    EXPECT_LT(std::count(tokens.begin(), tokens.end(), 300), 5);
  }
}

TEST(Translator, TokensThatAreNoTextAreForbidden) {
  const Tokenizer tokenizer = golden_tokenizer();
  const Translator padded(make_decoder(tiny_config(tokenizer.size() + 2)), tokenizer, {});
  std::vector<int32_t> expected;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    if (id != tokenizer.end_id() && (tokenizer.is_control(id) || id == tokenizer.unknown_id()))
      expected.push_back(id);
  }
  ASSERT_GE(expected.size(), 2U);
  expected.push_back(tokenizer.size());
  expected.push_back(tokenizer.size() + 1);
  EXPECT_EQ(padded.forbidden(), expected);
}

TEST(Translator, ProgressMayStopATranslation) {
  const Translator translator = make_translator(8);
  const std::string line = "Le chat dort. Il ne fait rien. Il pleut.";
  int shown = 0;
  const Translation stopped = translator.translate(line, "", [&](const std::string&) { return ++shown < 2; });
  EXPECT_EQ(shown, 2);
  EXPECT_EQ(stopped.text(), "");  // the first part has no result yet
  std::vector<std::string> texts;
  const Translation whole = translator.translate(line, "The", [&](const std::string& text) {
    texts.push_back(text);
    return true;
  });
  EXPECT_EQ(whole.sources.size(), 3U);
  EXPECT_TRUE(whole.text().starts_with("The"));
  EXPECT_TRUE(texts.front().starts_with("The"));
  EXPECT_GT(texts.back().size(), texts.front().size());
}

TEST(Translator, EveryLineAdvancesTheCountByOne) {
  int64_t count = 0;
  const auto all =
      make_translator().translate_all({"Oui.", "", "Non."}, [&](int64_t more) { count += more; });
  EXPECT_EQ(count, 3);
  EXPECT_EQ(all.size(), 3U);
}

TEST(Translator, ExamplesLeaveHalfOfTheContextFree) {
  const TemporaryFolder folder;
  Translator translator = make_translator();  // a context of 128
  EXPECT_THAT([&] { translator.use_examples(folder.write("none.tsv", "\n")); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("no examples in this file")));
  // Adds words until the examples are refused: at 65 of 128.
  std::string words;
  int64_t rows = 0;
  std::string refusal;
  for (int i = 0; i < 100 && refusal.empty(); ++i, words += " a") {
    try {
      translator.use_examples(folder.write("shots.tsv", "Oui" + words + "\tYes\n"));
      rows = translator.format().rows(0, 0);
      EXPECT_EQ(translator.config().shots, folder / "shots.tsv");
    } catch (const UserError& error) {
      refusal = error.what();
    }
  }
  EXPECT_EQ(rows, 64);
  EXPECT_THAT(refusal, testing::HasSubstr("the examples take 65 of the model's 128 tokens"));
}

TEST(Translator, ATokenizerOfAnotherModelIsRefused) {
  const Tokenizer tokenizer =
      Tokenizer::load(std::string(CALQUE_SOURCE_FOLDER) + "/tests/golden/tokenizer/bpe.model");
  EXPECT_THROW(Translator(make_decoder(tiny_config(tokenizer.size() - 1)), tokenizer, {}), UserError);
  const Translator padded(make_decoder(tiny_config(tokenizer.size() + 7)), tokenizer, {});
  EXPECT_NO_THROW(padded.translate("Le chat dort."));  // rows beyond the pieces are never chosen
}

TEST(Translator, AHookChangesTheTranslationAndIsGoneAfterwards) {
  Translator translator = make_translator();
  const std::string before = translator.translate("Le chat dort.").text();
  const Hook hook = [](const std::string& name, const torch::Tensor& value) {
    if (name == "norm") value.neg_();
  };
  translator.set_hook(&hook);
  EXPECT_NE(translator.translate("Le chat dort.").text(), before);
  translator.set_hook(nullptr);
  EXPECT_EQ(translator.translate("Le chat dort.").text(), before);
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

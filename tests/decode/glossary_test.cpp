#include "calque/decode/glossary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_translator.h"

namespace calque {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> targets(const Glossary& glossary, const std::string& source) {
  std::vector<std::string> all;
  for (const Glossary::Found& found : glossary.terms_in(source)) all.push_back(found.term.target);
  return all;
}

// Translates with the prefixes, and counts the rounds.
struct Rounds {
  const Translator& translator;
  std::vector<std::vector<std::string>> prefixes = {};

  std::vector<Translation> operator()(const std::vector<std::string>& lines,
                                      const std::vector<std::string>& given) {
    prefixes.push_back(given);
    std::vector<Translation> all;
    for (size_t i = 0; i < lines.size(); ++i) all.push_back(translator.translate(lines[i], given[i]));
    return all;
  }
};

}  // namespace

TEST(Glossary, TermsAreWholeWordsInAnyCaseTheLongestFirst) {
  const Glossary glossary(
      {{"chat", "feline"}, {"chat noir", "black cat"}, {"eau", "water"}, {"", "x"}, {"vide", " "}});
  EXPECT_THAT(targets(glossary, "Le Chat dort."), ElementsAre("feline"));
  EXPECT_THAT(targets(glossary, "L'eau du chat noir"), ElementsAre("water", "black cat"));
  EXPECT_THAT(targets(glossary, "Le chat noir et le chat blanc"), ElementsAre("black cat", "feline"));
  EXPECT_THAT(targets(glossary, "Le château est vide."), IsEmpty());
  const auto found = glossary.terms_in("Le chat noir voit l'eau et un chat");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(std::pair(found[0].first_word, found[0].last_word), std::pair(size_t{1}, size_t{3}));
  EXPECT_EQ(found[1].first_word, 4U);  // l'eau
  EXPECT_EQ(found[2].first_word, 7U);  // the second cat
  EXPECT_TRUE(Glossary::contains("The Black  cat.", "black cat"));
  EXPECT_FALSE(Glossary::contains("The blackest cat.", "black"));
  EXPECT_FALSE(Glossary::contains("", "black"));
  EXPECT_TRUE(Glossary(std::vector<Glossary::Term>{{"", "x"}}).empty());
}

TEST(Glossary, EveryTermOfTheSourceIsInTheTranslationAfterAtMostAsManyRounds) {
  const Translator translator = make_translator();
  const Glossary glossary({{"chat", "feline"}, {"chaise", "wooden stool"}, {"gare", "station"}});
  const std::vector<std::string> lines = {"Le chat dort sur la chaise.", "Il pleut.", "", "Où est la gare ?"};
  std::vector<Translation> translations = translator.translate_all(lines);
  const std::string untouched = translations[1].text();
  Rounds rounds{translator};
  force_terms(glossary, translator, translations, std::ref(rounds));
  EXPECT_TRUE(Glossary::contains(translations[0].text(), "feline")) << translations[0].text();
  EXPECT_TRUE(Glossary::contains(translations[0].text(), "wooden stool")) << translations[0].text();
  EXPECT_TRUE(Glossary::contains(translations[3].text(), "station")) << translations[3].text();
  EXPECT_EQ(translations[1].text(), untouched);
  EXPECT_EQ(translations[2].text(), "");
  EXPECT_EQ(rounds.prefixes.size(), 2U);
  EXPECT_EQ(rounds.prefixes[0].size(), 2U);  // the two lines with terms
  EXPECT_EQ(translations[0].best.size(), 1U);
  const TranslatedText& best = translations[0].best.front();
  EXPECT_EQ(best.score, best.parts.front().score);
}

TEST(Glossary, ForcingTermsEndsWithWhatTheCheckThrows) {
  const Translator translator = make_translator();
  std::vector<Translation> translations = {translator.translate("Le chat dort.")};
  const auto check = [] { throw std::runtime_error("left"); };
  EXPECT_THROW(force_terms(Glossary(std::vector<Glossary::Term>{{"chat", "feline"}}), translator,
                           translations, {}, "", check),
               std::runtime_error);
}

TEST(Glossary, ATranslationThatHasTheTermIsNotSearchedForAgain) {
  const Translator translator = make_translator();
  std::vector<Translation> translations = {translator.translate("Le chat dort.", "A fine feline")};
  const std::string text = translations[0].text();
  Rounds rounds{translator};
  force_terms(Glossary(std::vector<Glossary::Term>{{"chat", "Feline"}}), translator, translations,
              std::ref(rounds));
  EXPECT_THAT(rounds.prefixes, IsEmpty());
  EXPECT_EQ(translations[0].text(), text);
}

TEST(Glossary, TheRequestsPrefixStaysAndATermThatIsTooLongIsLeftOut) {
  const Translator translator = make_translator();
  std::vector<Translation> translations = {translator.translate("Le chat dort.", "A fine day ")};
  std::string endless;
  for (int i = 0; i < 200; ++i) endless += "word ";
  Rounds rounds{translator};
  force_terms(Glossary(std::vector<Glossary::Term>{{"chat", "feline"}, {"dort", endless}}), translator,
              translations, std::ref(rounds), "A fine day ");
  EXPECT_TRUE(translations[0].text().starts_with("A fine day")) << translations[0].text();
  EXPECT_TRUE(Glossary::contains(translations[0].text(), "feline")) << translations[0].text();
}

}  // namespace calque

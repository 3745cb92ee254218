#include "calque/data/word_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/unicode.h"
#include "calque/data/sentence_piece_file.h"
#include "data/small_corpus.h"

namespace calque {
namespace {

Tokenizer golden(const std::string& name) {
  return Tokenizer::load(source_folder() / "tests/golden/tokenizer" / name);
}

std::vector<int32_t> encoded(WordEncoder& encoder, std::string_view text) {
  std::vector<int32_t> ids = {-7};  // stays
  encoder.encode(text, ids);
  EXPECT_EQ(ids.front(), -7);
  ids.erase(ids.begin());
  return ids;
}

// A BPE model with byte fallback whose words are apart, until `change` makes it another.
Tokenizer model_with(const std::function<void(SentencePieceFile&)>& change) {
  SentencePieceFile file;
  file.remove_extra_whitespaces = true;
  using Kind = SentencePiece::Kind;
  file.pieces = {{"<unk>", 0, Kind::unknown}, {"<s>", 0, Kind::control}, {"</s>", 0, Kind::control}};
  constexpr const char* digits = "0123456789ABCDEF";
  for (size_t i = 0; i < 256; ++i)
    file.pieces.push_back({std::string("<0x") + digits[i / 16] + digits[i % 16] + ">", 0, Kind::byte});
  for (const char* text : {"▁", "a", "b", "▁a", "▁b"})
    file.pieces.push_back({text, -static_cast<float>(file.pieces.size())});
  change(file);
  return Tokenizer::from_bytes(file.serialize(), "made");
}

}  // namespace

TEST(WordEncoder, EncodesTheCarriedCorpusAsItsTokenizerDoes) {
  for (const char* name : {"bpe.model", "unigram.model", "byte-level.json"}) {
    const Tokenizer tokenizer = golden(name);
    WordEncoder encoder(tokenizer, 500);  // so few that words are forgotten and met again
    LineReader reader(source_folder() / "data/everyday/natural-train.tsv");
    std::string_view line;
    while (reader.next(line))
      ASSERT_EQ(encoded(encoder, line), tokenizer.encode(line)) << name << ": " << line;
  }
}

// Normalisation may replace a character by spaces, marks that join what is before, or several characters.
TEST(WordEncoder, EncodesEveryCharacterInsideAndAtTheEdgesOfWordsAsItsTokenizerDoes) {
  for (const Tokenizer& tokenizer : {golden("bpe.model"), small_tokenizer()}) {
    ASSERT_TRUE(tokenizer.encodes_words_apart());
    WordEncoder encoder(tokenizer);
    for (char32_t point = 1; point < 0x30000; ++point) {
      if (point >= 0xD800 && point < 0xE000) continue;
      const bool is_one_of_many =
          (point >= 0x3400 && point < 0xF900) || (point >= 0x10000 && point < 0x1D000);
      if ((is_one_of_many || point >= 0x1F300) && point % 97 != 0) continue;
      const std::string c = to_utf8(std::u32string_view(&point, 1));
      const std::string text = "le " + c + "a b" + c + " " + c + " c" + c + "d  " + c + c;
      ASSERT_EQ(encoded(encoder, text), tokenizer.encode(text)) << static_cast<uint32_t>(point);
    }
  }
}

TEST(WordEncoder, SpacesAndLongWordsDoNotMatter) {
  const Tokenizer tokenizer = golden("bpe.model");
  WordEncoder encoder(tokenizer);
  for (const std::string& text :
       {std::string(), std::string(" "), std::string("  le  chat "),
        std::string(200, 'x') + " " + std::string(200, 'x'), std::string("a ▁ b▁ ▁c")}) {
    for (int repeat = 0; repeat < 2; ++repeat)
      EXPECT_EQ(encoded(encoder, text), tokenizer.encode(text)) << text;
  }
}

TEST(WordEncoder, WordsAreApartOnlyWhereTheModelSaysSo) {
  EXPECT_TRUE(golden("bpe.model").encodes_words_apart());
  EXPECT_FALSE(golden("unigram.model").encodes_words_apart());  // sums of floats along the text
  EXPECT_FALSE(golden("byte-level.json").encodes_words_apart());
  using Kind = SentencePiece::Kind;
  EXPECT_TRUE(model_with([](SentencePieceFile&) {}).encodes_words_apart());
  const std::pair<const char*, std::function<void(SentencePieceFile&)>> joined[] = {
      {"no prefix", [](auto& file) { file.add_dummy_prefix = false; }},
      {"spaces count", [](auto& file) { file.remove_extra_whitespaces = false; }},
      {"no byte fallback",
       [](auto& file) { file.pieces.erase(file.pieces.begin() + 3, file.pieces.begin() + 259); }},
      {"two words",
       [](auto& file) {
         file.pieces.push_back({"▁a▁b", -999});
       }},
      {"two spaces",
       [](auto& file) {
         file.pieces.push_back({"▁▁", -999});
       }},
      {"ends a word",
       [](auto& file) {
         file.pieces.push_back({"a▁", -999});
       }},
      {"user's",
       [](auto& file) {
         file.pieces.push_back({"▁c", 0, Kind::user_defined});
       }},
      {"user's space",
       [](auto& file) {
         file.pieces.push_back({"a b", 0, Kind::user_defined});
       }},
  };
  for (const auto& [name, change] : joined) {
    const Tokenizer tokenizer = model_with(change);
    EXPECT_FALSE(tokenizer.encodes_words_apart()) << name;
    WordEncoder encoder(tokenizer);
    EXPECT_EQ(encoded(encoder, "a b  a c ab"), tokenizer.encode("a b  a c ab")) << name;
  }
}

}  // namespace calque

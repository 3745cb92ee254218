#include "calque/data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/hash.h"
#include "data/small_corpus.h"
#include "field_bounds.h"

namespace calque {

TEST(TokenizerConfig, NumbersHaveTheirLimitsAndDefaults) {
  TokenizerConfig config;
  EXPECT_EQ(show_config(fields(config), "", false),
            "path: \nvocabulary: 8000\nkind: bpe\nnfkc: true\ncharacter_coverage: 0.9995\n"
            "train_lines: 2000000\nsampling: 0\n");
  expect_bounds(fields(config), {{"vocabulary", "264", "263"},
                                 {"vocabulary", "1000000", "1000001"},
                                 {"character_coverage", "0.9", "0.8999"},
                                 {"character_coverage", "1", "1.0001"},
                                 {"train_lines", "1", "0"},
                                 {"sampling", "0", "-0.1"},
                                 {"sampling", "0.999", "1"}});
}

TEST(Tokenizer, HasControlTokensAndByteTokens) {
  const Tokenizer& tokenizer = small_tokenizer();
  EXPECT_EQ(tokenizer.size(), 330);
  EXPECT_EQ(tokenizer.unknown_id(), 0);
  EXPECT_EQ(tokenizer.begin_id(), 1);
  EXPECT_EQ(tokenizer.end_id(), 2);
  EXPECT_EQ(tokenizer.separator_id(), 3);
  EXPECT_TRUE(tokenizer.is_control(3));
  EXPECT_TRUE(tokenizer.find("<0x0A>"));
  EXPECT_FALSE(tokenizer.find("nowhere"));
  EXPECT_EQ(tokenizer.piece(3), "<sep>");
  EXPECT_TRUE(tokenizer.is_byte(4) && !tokenizer.is_byte(329) && !tokenizer.is_control(4));
  EXPECT_TRUE(tokenizer.begins_word(tokenizer.encode("chat").front()));
  EXPECT_EQ(&tokenizer.pieces().piece(3), &tokenizer.piece(3));
  EXPECT_STREQ(tokenizer.file_name(), "tokenizer.model");
  EXPECT_EQ(tokenizer.hash(), hash_bytes(tokenizer.serialized()));
}

TEST(Tokenizer, DecodingReversesEncodingOfAnyText) {
  for (const char* text :
       {"le chat mange", "漢字 🙂 Ω", "l'été à Noël", "<sep> is text here", "a\tb", ""}) {
    EXPECT_EQ(small_tokenizer().decode(small_tokenizer().encode(text)), text);
  }
}

TEST(Tokenizer, TextIsNeverEncodedToControlTokens) {
  EXPECT_THAT(small_tokenizer().encode("a <sep> </s> <s> b"), testing::Each(testing::Gt(3)));
}

TEST(Tokenizer, TrainingTwiceGivesTheSameBytes) {
  const auto train = [] {
    TokenizerConfig config;
    config.vocabulary = 290;
    config.kind = TokenizerKind::unigram;
    int i = 0;
    return Tokenizer::train(config, [&](std::string& line) {
      line = "la maison numéro " + std::to_string(i * 37 % 101) + " est grande";
      return i++ < 300;
    });
  };
  EXPECT_EQ(train().serialized(), train().serialized());
}

TEST(Tokenizer, SamplingIsAPureFunctionOfTheSeedAndKeepsTheText) {
  const Tokenizer& tokenizer = small_tokenizer();
  const std::string text = "le chat mange une pomme rouge";
  std::set<std::vector<int32_t>> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto ids = tokenizer.encode_sampled(text, 0.3, seed);
    EXPECT_EQ(ids, tokenizer.encode_sampled(text, 0.3, seed));
    EXPECT_EQ(tokenizer.decode(ids), text);
    seen.insert(ids);
  }
  EXPECT_GT(seen.size(), 5u);
  EXPECT_EQ(tokenizer.encode_sampled(text, 0.0, 1), tokenizer.encode(text));
}

TEST(Tokenizer, RejectsInvalidModelsAndIds) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { Tokenizer::load(folder.write("a.model", "not a model")); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("a.model: not a SentencePiece model")));
  EXPECT_THROW(Tokenizer::load(folder.write("b.model", "")), UserError);
  EXPECT_THROW(Tokenizer::load(folder / "none.model"), UserError);
  EXPECT_THROW(small_tokenizer().decode(std::vector<int32_t>{100'000}), UserError);
  EXPECT_THROW(small_tokenizer().decode(std::vector<int32_t>{-1}), UserError);
  EXPECT_THROW(small_tokenizer().decode(std::vector<int32_t>{330}), UserError);
  EXPECT_NO_THROW(small_tokenizer().decode(std::vector<int32_t>{0, 329}));
}

TEST(Tokenizer, AVocabularyThatDoesNotFitTheCorpusIsRefusedWithOneThatDoes) {
  const auto train = [](int64_t vocabulary, const std::string& text) {
    TokenizerConfig config;
    config.vocabulary = vocabulary;
    config.character_coverage = 1;
    int lines = 0;
    return Tokenizer::train(config, [&](std::string& line) {
      line = text;
      return lines++ < 3;
    });
  };
  const auto refusal = [&](int64_t vocabulary, const std::string& text) {
    try {
      train(vocabulary, text);
    } catch (const UserError& error) {
      return std::string(error.what()) + "; " + error.help();
    }
    return std::string("accepted");
  };
  // 4 control tokens, 256 bytes, 12 letters and the space mark, and what is merged from them.
  const std::string text = "abcdefghijkl";
  EXPECT_EQ(refusal(5000, text),
            "tokenizer.vocabulary=5000 is too large: the corpus has text for a vocabulary of 303; set "
            "tokenizer.vocabulary=303 or less, or add text");
  EXPECT_EQ(train(303, text).size(), 303);
  EXPECT_EQ(refusal(264, text),
            "tokenizer.vocabulary=264 is too small: the characters of the corpus alone need a vocabulary of "
            "273; set tokenizer.vocabulary=273 or more, or lower tokenizer.character_coverage");
  EXPECT_EQ(train(273, text).size(), 273);
}

// The golden ids come from the `sentencepiece` Python package with the same model file (tools/make-goldens).
TEST(Tokenizer, IdsMatchThePythonPackage) {
  const auto golden = source_folder() / "tests/golden/tokenizer";
  for (const char* kind : {"bpe", "unigram"}) {
    const Tokenizer tokenizer = Tokenizer::load(golden / (std::string(kind) + ".model"));
    const auto expected = nlohmann::json::parse(read_file(golden / (std::string(kind) + ".json")));
    ASSERT_GT(expected.size(), 100u);
    for (const auto& one : expected) {
      EXPECT_EQ(tokenizer.encode(one["text"].get<std::string>()), one["ids"].get<std::vector<int32_t>>())
          << one["text"];
      EXPECT_EQ(tokenizer.decode(one["ids"].get<std::vector<int32_t>>()), one["decoded"].get<std::string>());
    }
  }
}

TEST(ByteLevelBpe, IdsMatchTheTokenizersPackage) {
  for (const char* name : {"byte-level", "byte-level-digits"}) {
    const std::string file =
        read_file(std::string(CALQUE_SOURCE_FOLDER) + "/tests/golden/tokenizer/" + name + ".json");
    const Tokenizer tokenizer = Tokenizer::from_bytes(file, name);
    EXPECT_EQ(tokenizer.begin_id(), 1);
    EXPECT_EQ(tokenizer.end_id(), 2);
    EXPECT_STREQ(tokenizer.file_name(), "tokenizer.json");
    size_t texts = 0;
    const auto golden = nlohmann::json::parse(file);
    for (const auto& row : golden["ids"]) {
      const std::string text = row["text"];
      EXPECT_EQ(tokenizer.encode(text), row["ids"].get<std::vector<int32_t>>()) << name << ": " << text;
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
      ++texts;
    }
    EXPECT_GT(texts, 250U);
    EXPECT_THAT(tokenizer.encode("<|im_start|> is text"), testing::Each(testing::Gt(2)));
    const auto sampled = tokenizer.encode_sampled("le petit chat dort", 0.5, 3);
    EXPECT_EQ(tokenizer.decode(sampled), "le petit chat dort");
    EXPECT_EQ(sampled, tokenizer.encode_sampled("le petit chat dort", 0.5, 3));
    EXPECT_GT(sampled.size(), tokenizer.encode("le petit chat dort").size());
    // Would time out if merging took quadratic time.
    EXPECT_EQ(tokenizer.encode(std::string(100'000, 'x')).empty(), false);
  }
}

// The library itself follows such tables past their end.
TEST(Tokenizer, DamagedSentencePieceModelsAreRefused) {
  const std::string good = read_file(source_folder() / "tests/golden/tokenizer/bpe.model");
  const auto error_message = [](const std::string& model) -> std::string {
    try {
      Tokenizer::from_bytes(model, "t.model").encode("ﬁn ½ Å … Où ?");
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(error_message(good), "accepted");
  EXPECT_THAT(error_message(good.substr(0, 2000)), testing::HasSubstr("t.model"));
  // The normalizer's table begins with the size of its trie, then the root: point it far outside.
  const size_t name = good.find("nfkc");
  ASSERT_NE(name, std::string::npos);
  const size_t table = good.find("\x12", name) + 4;  // the field's number, then its length in three bytes
  std::string outside = good;
  outside.replace(table + 4, 4, std::string("\xFF\xFB\xFF\x7F", 4));
  EXPECT_THAT(error_message(outside), testing::HasSubstr("the table of its normalizer is damaged"));
  std::string longer = good;
  longer.replace(table, 4, std::string("\xFF\xFF\xFF\x7F", 4));
  EXPECT_THAT(error_message(longer), testing::HasSubstr("the table of its normalizer is damaged"));
}

// Found by tools/fuzz: the control piece "a" is taken for the letter of a text.
TEST(Tokenizer, AModelThatContradictsItselfIsAUserError) {
  const auto tokenizer = Tokenizer::load(std::filesystem::path(CALQUE_SOURCE_FOLDER) /
                                         "tests/fuzz/findings/tokenizer/sentencepiece-unconsumed");
  EXPECT_THROW(tokenizer.encode("L'élève a lu 12 pages"), UserError);
}

TEST(ByteLevelBpe, ErrorsNameWhatIsNotSupported) {
  const auto error_message = [](const std::string& json) -> std::string {
    try {
      Tokenizer::from_bytes(json, "t.json");
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(error_message("{"), testing::HasSubstr("not valid JSON"));
  EXPECT_THAT(error_message("{}"), testing::HasSubstr("not a tokenizer.json"));
  EXPECT_THAT(error_message(R"({"model": {"type": "WordPiece"}})"),
              testing::HasSubstr("WordPiece is not supported"));
  EXPECT_THAT(error_message(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})"),
              testing::HasSubstr("unknown pieces"));
  EXPECT_THAT(error_message(R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})"),
              testing::HasSubstr("invalid token id"));
  EXPECT_THAT(error_message(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})"),
              testing::HasSubstr("not byte-level"));
  EXPECT_THAT(error_message(R"({"model": {"type": "BPE", "vocab": 3, "merges": []}})"),
              testing::HasSubstr("wrong type"));
}

}  // namespace calque

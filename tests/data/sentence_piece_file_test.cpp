#include "calque/data/sentence_piece_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/data/tokenizer.h"
#include "data/small_pieces.h"
#include "temporary_folder.h"

namespace calque {
namespace {

using Kind = SentencePiece::Kind;

std::string damage_message(const std::function<void()>& run) {
  try {
    run();
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

// Encoded by hand after sentencepiece_model.proto: key = field number << 3 | wire type.
TEST(SentencePieceFile, WritesTheFieldsOfTheFormat) {
  SentencePieceFile file;
  file.pieces = {{"u", -0.5F, Kind::unknown}, {"e", 0, Kind::control}, {"b", 0, Kind::control}};
  file.end_id = 1;
  file.begin_id = 2;
  file.add_dummy_prefix = false;
  file.remove_extra_whitespaces = true;
  using std::string_literals::operator""s;
  EXPECT_EQ(file.serialize(),
            "\x0a\x0a\x0a\x01u\x15\x00\x00\x00\xbf\x18\x02"
            "\x0a\x0a\x0a\x01"
            "e\x15\x00\x00\x00\x00\x18\x03"
            "\x0a\x0a\x0a\x01"
            "b\x15\x00\x00\x00\x00\x18\x03"
            "\x12\x25\x18\x02\x20\x03"  // trainer: BPE, three pieces
            "\xc0\x02\x00\xc8\x02\x02\xd0\x02\x01\xd8\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
            "\xea\x02\x01u\xf2\x02\x01"
            "b\xfa\x02\x01"
            "e"
            "\x1a\x10\x0a\x08identity\x18\x00\x20\x01\x28\x01"s);
}

TEST(SentencePieceFile, ReadsBackWhatItWrote) {
  SentencePieceFile file = letters_file();
  file.add_dummy_prefix = false;
  file.remove_extra_whitespaces = true;
  const std::string model = file.serialize();
  const auto pieces = read_sentence_pieces(model);
  ASSERT_EQ(pieces.size(), file.pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i].text, file.pieces[i].text);
    EXPECT_EQ(pieces[i].score, file.pieces[i].score);
    EXPECT_EQ(pieces[i].kind, file.pieces[i].kind);
  }
  const SentencePieceSettings settings = read_sentence_piece_settings(model);
  EXPECT_FALSE(settings.is_unigram);
  EXPECT_FALSE(settings.byte_fallback);
  EXPECT_EQ(settings.normalizer, "identity");
  EXPECT_TRUE(settings.charsmap.empty());
  EXPECT_FALSE(settings.add_dummy_prefix);
  EXPECT_TRUE(settings.remove_extra_whitespaces);
}

TEST(SentencePieceFile, ByteFallbackNeedsAll256BytePieces) {
  SentencePieceFile file = letters_file();
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_FALSE(read_sentence_piece_settings(file.serialize()).byte_fallback) << byte;
    file.pieces.push_back({fmt::format("<0x{:02X}>", byte), 0, Kind::byte});
  }
  EXPECT_TRUE(read_sentence_piece_settings(file.serialize()).byte_fallback);
}

TEST(SentencePieceFile, SettingsOfTrainedModelsAreRead) {
  const auto golden = source_folder() / "tests/golden/tokenizer";
  const SentencePieceSettings bpe = read_sentence_piece_settings(read_file(golden / "bpe.model")),
                              unigram = read_sentence_piece_settings(read_file(golden / "unigram.model"));
  EXPECT_FALSE(bpe.is_unigram);
  EXPECT_TRUE(unigram.is_unigram);
  EXPECT_TRUE(bpe.byte_fallback);
  EXPECT_EQ(bpe.normalizer, "nmt_nfkc");
  EXPECT_GT(bpe.charsmap.size(), 100'000U);
  // What the format says where a file has no such field.
  const SentencePieceSettings defaults = read_sentence_piece_settings("");
  EXPECT_TRUE(defaults.is_unigram && defaults.add_dummy_prefix && defaults.remove_extra_whitespaces);
  EXPECT_FALSE(defaults.byte_fallback);
  EXPECT_EQ(SentencePiece{}.score, 0);
  const SentencePieceFile file;
  EXPECT_EQ(file.unknown_id, 0);
  EXPECT_EQ(file.begin_id, 1);
  EXPECT_EQ(file.end_id, 2);
  EXPECT_TRUE(file.add_dummy_prefix);
  EXPECT_FALSE(file.remove_extra_whitespaces);
}

TEST(SentencePieceFile, UnknownFieldsOfEveryWireTypeAreSkipped) {
  using std::string_literals::operator""s;
  const std::string others =
      "\x78\x96\x01"s                          // field 15: a varint of two bytes
      "\x79\x01\x02\x03\x04\x05\x06\x07\x08"s  // eight bytes
      "\x7d\x01\x02\x03\x04"s                  // four bytes
      "\x7a\x02zz"s;                           // text
  const auto pieces = read_sentence_pieces(others + "\x0a\x03\x0a\x01x"s + others);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].text, "x");
  EXPECT_EQ(pieces[0].kind, Kind::normal);
  // A piece whose fields have other wire types, or a kind that does not exist, keeps the defaults.
  const auto odd = read_sentence_pieces("\x0a\x0c\x08\x05\x12\x01z\x1a\x01z\x18\x07\x18\x00"s);
  ASSERT_EQ(odd.size(), 1U);
  EXPECT_EQ(odd[0].text, "");
  EXPECT_EQ(odd[0].score, 0);
  EXPECT_EQ(odd[0].kind, Kind::normal);
  EXPECT_EQ(read_sentence_pieces("\x0a\x02\x18\x06"s).at(0).kind, Kind::byte);
}

TEST(SentencePieceFile, DamageIsNamed) {
  using std::string_literals::operator""s;
  const auto refusal = [](const std::string& model) {
    return damage_message([&] { read_sentence_pieces(model); });
  };
  const std::string truncated = "the SentencePiece model ends too early; it is probably truncated";
  EXPECT_EQ(refusal("\x0a"s), truncated);
  EXPECT_EQ(refusal("\x0a\x05\x0a\x01x"s), truncated);
  EXPECT_EQ(refusal("\x0a\x03\x0a\x01x"s), "accepted");
  EXPECT_EQ(refusal("\x7d\x01\x02\x03"s), truncated);
  EXPECT_EQ(refusal("\x7b"s), "the SentencePiece model is damaged: unknown wire type");
  EXPECT_EQ(refusal(std::string(9, '\xff')), truncated);
  EXPECT_EQ(refusal(std::string(9, '\xff') + "\x01"s),  // a number of ten bytes is the longest
            "the SentencePiece model is damaged: unknown wire type");
  EXPECT_EQ(refusal(std::string(11, '\xff')), "the SentencePiece model is damaged: invalid varint");
  EXPECT_EQ(damage_message([] { prune_sentence_piece("\x78\x01"s, {}, 0, 1, 2); }),
            "the SentencePiece model is damaged: expected a message in every field");
}

}  // namespace calque

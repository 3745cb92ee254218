// Which SentencePiece models are refused before the library follows their tables past the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "calque/base/error.h"
#include "calque/data/tokenizer.h"
#include "data/small_pieces.h"

namespace calque {
namespace {

std::string varint(size_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>((value & 0x7F) | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string model_refusal(const std::string& model) {
  try {
    Tokenizer::from_bytes(model, "t.model").encode("abc");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

// The letters' model with a normalizer's table. A field that comes twice keeps its last value.
std::string with_table(const std::string& table) {
  const std::string field = "\x12" + varint(table.size()) + table;
  return letters_file().serialize() + "\x1a" + varint(field.size()) + field;
}

// A table: the bytes of a trie, the units of its double array (darts-clone), then the replacements.
// A unit: label in bits 0 to 7, has-a-value in bit 8, the offset to its children from bit 10 on.
struct Table {
  std::vector<uint32_t> units = std::vector<uint32_t>(768);
  std::string replacements = std::string("b\0", 2);
  size_t trie_bytes_off = 0;  // added to the stated size

  Table() {
    units[0] = 0x100U << 10;        // the root's children are at 0x100 ^ character
    add_child('x', 0x200);          // its children, and its value, are at 0x200
    units[0x200] = (1U << 31) | 0;  // the value: the replacement at byte 0
  }
  void add_child(uint8_t character, uint32_t next, bool has_value = true) {
    const uint32_t place = 0x100U ^ character;
    units[place] = character | (has_value ? 1U << 8 : 0) | ((place ^ next) << 10);
  }
  std::string bytes() const {
    const auto size = static_cast<uint32_t>(units.size() * 4 + trie_bytes_off);
    std::string all(4 + units.size() * 4, '\0');
    std::memcpy(all.data(), &size, 4);
    std::memcpy(all.data() + 4, units.data(), units.size() * 4);
    return all + replacements;
  }
  std::string refused() const { return model_refusal(with_table(bytes())); }
};

const char* const damaged = "t.model: not a SentencePiece model: the table of its normalizer is damaged";

}  // namespace

TEST(SentencePieceCheck, ATableThatIsAcceptedReplacesCharacters) {
  const Tokenizer tokenizer = Tokenizer::from_bytes(with_table(Table().bytes()), "t.model");
  EXPECT_EQ(tokenizer.encode("axc"), tokenizer.encode("abc"));
  EXPECT_EQ(tokenizer.piece(tokenizer.encode("axc").at(0)), "▁abc");
}

TEST(SentencePieceCheck, ChildrenAndValuesLieInsideTheTable) {
  Table table;
  EXPECT_EQ(table.refused(), "accepted");
  table.units.resize(767);  // the last child of 0x200 would be at 767
  EXPECT_EQ(table.refused(), damaged);
  for (const uint8_t character : {uint8_t{1}, uint8_t{2}, uint8_t{254}, uint8_t{255}}) {
    table = {};
    table.add_child(character, 0x300);  // just behind the end
    EXPECT_EQ(table.refused(), damaged) << static_cast<int>(character);
    table.units[0x100U ^ character] |= 1U << 31;  // a value, not a child: it leads nowhere
    EXPECT_EQ(table.refused(), "accepted");
  }
  table = {};
  table.units[0x200] = (1U << 31) | 1;
  EXPECT_EQ(table.refused(), "accepted");
  table.units[0x200] = (1U << 31) | 2;  // the replacements have two bytes
  EXPECT_EQ(table.refused(), damaged);
  table.add_child('x', 0x200, /*has_value=*/false);  // then it does not matter
  EXPECT_EQ(table.refused(), "accepted");
  table = {};
  table.units[0] = (1U << 10) | (1U << 9);  // bit 9: the offset counts in 256s
  EXPECT_EQ(table.refused(), "accepted");
  table.units[0] = (3U << 10) | (1U << 9);
  EXPECT_EQ(table.refused(), damaged);
  table = {};
  table.add_child('x', 0x100, /*has_value=*/false);  // a loop must not be followed for ever
  EXPECT_EQ(table.refused(), "accepted");
}

TEST(SentencePieceCheck, TheSizesOfATableFitTogether) {
  EXPECT_EQ(model_refusal(with_table("1234567")), damaged);
  Table table;
  table.replacements = "bc";  // not ended by a zero byte
  EXPECT_EQ(table.refused(), damaged);
  table.replacements = "";
  EXPECT_EQ(table.refused(), damaged);
  for (const int off : {-1, 1, 2, 3}) {
    table = {};
    table.trie_bytes_off = static_cast<size_t>(off);
    EXPECT_EQ(table.refused(), damaged) << off;
  }
  table = {};
  table.units.clear();
  EXPECT_EQ(table.refused(), damaged);
  table = {};
  table.replacements.resize((16 << 20) - 4 - 768 * 4);
  EXPECT_EQ(table.refused(), "accepted");
  table.replacements += '\0';
  EXPECT_EQ(table.refused(), damaged);
}

TEST(SentencePieceCheck, PiecesHaveAtMost4096Bytes) {
  SentencePieceFile file = letters_file();
  SentencePiece& longest = file.pieces.emplace_back();
  longest.text.assign(4096, 'z');
  EXPECT_EQ(model_refusal(file.serialize()), "accepted");
  longest.text += 'z';
  EXPECT_EQ(model_refusal(file.serialize()), "t.model: not a SentencePiece model: piece 11 has 4097 bytes");
  EXPECT_EQ(model_refusal(""), "t.model: not a SentencePiece model: it has no pieces");
}

TEST(SentencePieceCheck, AModelNeedsBeginAndEndTokens) {
  for (const size_t id : {1, 2}) {
    SentencePieceFile file = letters_file();
    file.pieces[id].kind = SentencePiece::Kind::normal;  // as if it were text
    EXPECT_EQ(model_refusal(file.serialize()),
              std::string("t.model: the model has no ") + (id == 1 ? "<s>" : "</s>") + " token");
  }
}

}  // namespace calque

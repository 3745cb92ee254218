#include "sentence_piece_check.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "calque/base/error.h"
#include "calque/data/sentence_piece_file.h"

namespace calque {
namespace {

constexpr size_t most_pieces = 10'000'000;
constexpr size_t longest_piece_bytes = 4096;
constexpr size_t largest_charsmap_bytes = 16 << 20;

// The table of a normalizer is a trie in a double array (darts-clone), then the replacements, each ended by a
// zero byte. The library follows the trie without looking at the array's end.
class CharsmapTable {
 public:
  explicit CharsmapTable(const std::string& charsmap) {
    if (charsmap.size() < 8 || charsmap.size() > largest_charsmap_bytes) return;
    uint32_t trie_bytes = 0;
    std::memcpy(&trie_bytes, charsmap.data(), sizeof trie_bytes);
    if (trie_bytes % sizeof(uint32_t) != 0 || trie_bytes == 0 || trie_bytes >= charsmap.size() - 4) return;
    units_.resize(trie_bytes / sizeof(uint32_t));
    std::memcpy(units_.data(), charsmap.data() + 4, trie_bytes);
    replacements_ = charsmap.substr(4 + trie_bytes);
    is_sound_ = charsmap.back() == '\0' && walk();
  }
  bool is_sound() const { return is_sound_; }
  // Whether a space is part of what is replaced, or a space mark of the replacements.
  bool touches_spaces() const { return has_space_ || replacements_.find(space_mark) != std::string::npos; }

 private:
  static uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }
  static uint32_t label(uint32_t unit) { return unit & ((1U << 31) | 0xFF); }
  static bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
  static uint32_t value(uint32_t unit) { return unit & ((1U << 31) - 1); }

  // Every node that can be reached: its children and its value lie inside the array.
  bool walk() {
    std::vector<bool> seen(units_.size());
    std::vector<uint32_t> waiting = {offset(units_[0])};
    while (!waiting.empty()) {
      const uint32_t node = waiting.back();
      waiting.pop_back();
      if ((node | 0xFF) >= units_.size()) return false;
      for (uint32_t c = 1; c < 256; ++c) {
        const uint32_t child = node ^ c;
        if (label(units_[child]) != c || seen[child]) continue;
        seen[child] = true;
        const uint32_t next = child ^ offset(units_[child]);
        if (next >= units_.size()) return false;
        has_space_ = has_space_ || c == ' ';
        if (has_value(units_[child]) && value(units_[next]) >= replacements_.size()) return false;
        waiting.push_back(next);
      }
    }
    return true;
  }

  std::vector<uint32_t> units_;
  std::string replacements_;
  bool is_sound_ = false;
  bool has_space_ = false;  // in what is replaced
};

}  // namespace

void check_sentence_piece(const std::string& model, const std::string& name) {
  const auto check = [&] {
    const std::vector<SentencePiece> pieces = read_sentence_pieces(model);
    if (pieces.empty()) throw UserError("it has no pieces");
    if (pieces.size() > most_pieces) throw UserError(fmt::format("it has {} pieces", pieces.size()));
    for (size_t id = 0; id < pieces.size(); ++id) {
      if (pieces[id].text.size() > longest_piece_bytes)
        throw UserError(fmt::format("piece {} has {} bytes", id, pieces[id].text.size()));
    }
    const std::string charsmap = read_sentence_piece_settings(model).charsmap;
    if (!charsmap.empty() && !CharsmapTable(charsmap).is_sound())
      throw UserError("the table of its normalizer is damaged");
  };
  try {
    check();
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: not a SentencePiece model: {}", name, error.what()),
                    "`calque tokenizer train` creates one");
  }
}

// BPE alone: a unigram model adds up scores in single precision along the text, and the sums decide. Without
// byte fallback, unknown characters at the edges of words would be joined.
bool has_separate_words(const std::string& model) {
  const SentencePieceSettings settings = read_sentence_piece_settings(model);
  if (settings.is_unigram || !settings.byte_fallback || !settings.add_dummy_prefix ||
      !settings.remove_extra_whitespaces || !settings.escape_whitespaces || settings.whitespace_as_suffix)
    return false;
  for (const SentencePiece& piece : read_sentence_pieces(model)) {
    // A mark after the beginning would join words. User-defined pieces are found before spaces get marks.
    const bool is_of_user = piece.kind == SentencePiece::Kind::user_defined;
    if (piece.text.find(space_mark, is_of_user ? 0 : 1) != std::string::npos) return false;
    if (is_of_user && piece.text.find(' ') != std::string::npos) return false;
  }
  return settings.charsmap.empty() || !CharsmapTable(settings.charsmap).touches_spaces();
}

}  // namespace calque

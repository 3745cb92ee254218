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
class CharsmapCheck {
 public:
  explicit CharsmapCheck(const std::string& charsmap) {
    if (charsmap.size() < 8 || charsmap.size() > largest_charsmap_bytes) return;
    uint32_t trie_bytes = 0;
    std::memcpy(&trie_bytes, charsmap.data(), sizeof trie_bytes);
    if (trie_bytes % sizeof(uint32_t) != 0 || trie_bytes == 0 || trie_bytes >= charsmap.size() - 4) return;
    units_.resize(trie_bytes / sizeof(uint32_t));
    std::memcpy(units_.data(), charsmap.data() + 4, trie_bytes);
    replacement_bytes_ = charsmap.size() - 4 - trie_bytes;
    is_sound_ = charsmap.back() == '\0' && walk();
  }
  bool is_sound() const { return is_sound_; }

 private:
  static uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }
  static uint32_t label(uint32_t unit) { return unit & ((1U << 31) | 0xFF); }
  static bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
  static uint32_t value(uint32_t unit) { return unit & ((1U << 31) - 1); }

  // Every node that can be reached: its children and its value lie inside the array.
  bool walk() const {
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
        if (has_value(units_[child]) && value(units_[next]) >= replacement_bytes_) return false;
        waiting.push_back(next);
      }
    }
    return true;
  }

  std::vector<uint32_t> units_;
  size_t replacement_bytes_ = 0;
  bool is_sound_ = false;
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
    if (!charsmap.empty() && !CharsmapCheck(charsmap).is_sound())
      throw UserError("the table of its normalizer is damaged");
  };
  try {
    check();
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: not a SentencePiece model: {}", name, error.what()),
                    "`calque tokenizer train` creates one");
  }
}

}  // namespace calque

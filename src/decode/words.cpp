#include "calque/decode/words.h"

#include "calque/base/text.h"

namespace calque {

PieceWords words_of(const Tokenizer& tokenizer, const std::vector<int32_t>& pieces) {
  PieceWords result;
  std::vector<std::vector<int32_t>> members;
  for (const int32_t id : pieces) {
    if (members.empty() || tokenizer.begins_word(id)) members.emplace_back();
    members.back().push_back(id);
    result.word_of.push_back(members.size() - 1);
  }
  for (const auto& word : members) {
    std::string text = tokenizer.decode(word);
    while (text.starts_with(' ')) text.erase(0, 1);
    result.words.push_back(find_invalid_utf8(text) ? "·" : text);
  }
  return result;
}

}  // namespace calque

#include "calque/data/word_encoder.h"

#include <algorithm>
#include <utility>

#include "sentence_piece_check.h"

namespace calque {
namespace {

constexpr size_t longest_word_bytes = 64;  // mutate: memory only; longer ones hardly come twice

}  // namespace

WordEncoder::WordEncoder(const Tokenizer& tokenizer, size_t words) : tokenizer_(tokenizer), words_(words) {}

void WordEncoder::encode(std::string_view text, std::vector<int32_t>& ids) {
  if (!tokenizer_.encodes_words_apart() || text.find(space_mark) != std::string_view::npos) {
    const std::vector<int32_t> all = tokenizer_.encode(text);
    ids.insert(ids.end(), all.begin(), all.end());
    return;
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) encode_word(text.substr(begin, end - begin), ids);
    begin = end + 1;
  }
}

void WordEncoder::encode_word(std::string_view word, std::vector<int32_t>& ids) {
  if (const auto found = recent_.places.find(word); found != recent_.places.end()) {
    const auto first = recent_.ids.begin() + static_cast<std::ptrdiff_t>(found->second.first);
    ids.insert(ids.end(), first, first + static_cast<std::ptrdiff_t>(found->second.count));
    return;
  }
  const size_t before = ids.size();
  if (const auto found = older_.places.find(word); found != older_.places.end()) {
    const auto first = older_.ids.begin() + static_cast<std::ptrdiff_t>(found->second.first);
    ids.insert(ids.end(), first, first + static_cast<std::ptrdiff_t>(found->second.count));
  } else {
    const std::vector<int32_t> own = tokenizer_.encode(word);
    ids.insert(ids.end(), own.begin(), own.end());
  }
  if (word.size() > longest_word_bytes) return;                              // mutate: memory only
  if (recent_.places.size() >= words_) older_ = std::exchange(recent_, {});  // mutate: memory only
  recent_.places.emplace(word, Place{recent_.ids.size(), ids.size() - before});
  recent_.ids.insert(recent_.ids.end(), ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
}

}  // namespace calque

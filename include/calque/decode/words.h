// Words: tokens grouped into the words that they form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calque/data/tokenizer.h"

namespace calque {

struct PieceWords {
  std::vector<size_t> word_of;     // by token
  std::vector<std::string> words;  // joined by spaces they are the text
};
PieceWords words_of(const Tokenizer& tokenizer, const std::vector<int32_t>& pieces);

}  // namespace calque

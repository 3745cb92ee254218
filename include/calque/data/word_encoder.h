// WordEncoder: encodes many texts faster than the tokenizer alone, with the same tokens: it remembers words.
// For one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "calque/base/hash.h"
#include "calque/data/tokenizer.h"

namespace calque {

class WordEncoder {
 public:
  // Refers to the tokenizer. Of the words that it has met, it remembers the last `words` to 2 × `words`.
  explicit WordEncoder(const Tokenizer& tokenizer, size_t words = 1 << 15);  // mutate: speed and memory only

  // Appends the tokens of `text` to `ids`.
  void encode(std::string_view text, std::vector<int32_t>& ids);

 private:
  struct Place {
    size_t first, count;  // in Words::ids
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return hash_bytes(word); }
  };
  struct Words {
    std::unordered_map<std::string, Place, Hash, std::equal_to<>> places;
    std::vector<int32_t> ids;
  };

  void encode_word(std::string_view word, std::vector<int32_t>& ids);

  const Tokenizer& tokenizer_;
  size_t words_;
  Words recent_, older_;  // once `recent_` is full, it becomes `older_`
};

}  // namespace calque

// SequenceFormat: what stands around source and target when they become one row of tokens,
// `<s> source <sep> target </s>`, or a prompt template for a tokenizer that has no <sep>.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calque/data/tokenizer.h"

namespace calque {

struct SequenceFormat {
  std::vector<int32_t> begin;      // before the source
  std::vector<int32_t> separator;  // between source and target
  int32_t end = 0;                 // after the target

  // Rows that a pair takes: the end is predicted, never read.
  int64_t rows(int64_t source_tokens, int64_t target_tokens) const {
    return static_cast<int64_t>(begin.size() + separator.size()) + source_tokens + target_tokens;
  }
};

// The format for pairs. `separator` is the template's text between source and target, for tokenizers without
// <sep>.
SequenceFormat pair_format(const Tokenizer& tokenizer, const std::string& separator = "\n");

// The format for plain text: `<s> text </s>`, loss on every token.
SequenceFormat text_format(const Tokenizer& tokenizer);

}  // namespace calque

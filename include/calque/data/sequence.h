// SequenceFormat: what stands around source and target when they become one row of tokens,
// `<s> source <sep> target </s>`, or the text of a prompt.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
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

// Refuses a prompt that does not have {source} once, and {target} once at its end.
void check_prompt(const std::string& prompt);

// The format for pairs: a prompt's text around them; without a prompt <sep> between them, or a new line where
// the tokenizer has no <sep>.
SequenceFormat pair_format(const Tokenizer& tokenizer, const std::string& prompt);

// The same for a model that was never trained on it, behind examples that show what is wanted: {source,
// target} each. It has no </s> to wait for, but ends where a line does.
SequenceFormat example_format(const Tokenizer& tokenizer, const std::string& prompt,
                              const std::vector<std::pair<std::string, std::string>>& examples);

// The format for plain text: `<s> text </s>`, loss on every token.
SequenceFormat text_format(const Tokenizer& tokenizer);

}  // namespace calque

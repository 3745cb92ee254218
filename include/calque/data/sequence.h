// SequenceFormat: the tokens around source and target in one sequence: `<s> source <sep> target </s>`, or the
// text of a prompt.
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

  // The number of rows of a pair. The end token is only a label, never an input, so it has no row.
  int64_t rows(int64_t source_tokens, int64_t target_tokens) const {
    return static_cast<int64_t>(begin.size() + separator.size()) + source_tokens + target_tokens;
  }
};

// Throws a UserError unless the prompt contains {source} once, and {target} once, at the end.
void check_prompt(const std::string& prompt);

// The format for pairs: the text of the prompt around source and target. If the prompt is empty, they are
// separated by <sep>, or by a newline if the tokenizer has no <sep>.
SequenceFormat pair_format(const Tokenizer& tokenizer, const std::string& prompt);

// The few-shot format for a model that was not trained on pairs: the {source, target} examples come first.
// The target ends with a newline, because such a model would not predict </s>.
SequenceFormat example_format(const Tokenizer& tokenizer, const std::string& prompt,
                              const std::vector<std::pair<std::string, std::string>>& examples);

// The format for plain text: `<s> text </s>`, with a label on every row.
SequenceFormat text_format(const Tokenizer& tokenizer);

}  // namespace calque

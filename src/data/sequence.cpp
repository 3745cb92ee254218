#include "calque/data/sequence.h"

#include "calque/base/error.h"

namespace calque {

SequenceFormat pair_format(const Tokenizer& tokenizer, const std::string& separator) {
  SequenceFormat format;
  format.begin = {tokenizer.begin_id()};
  format.end = tokenizer.end_id();
  if (tokenizer.separator_id()) {
    format.separator = {*tokenizer.separator_id()};
  } else {
    format.separator = tokenizer.encode(separator);
    if (format.separator.empty()) {  // a normaliser may eat blanks; the byte piece is then the newline itself
      const auto newline = tokenizer.find("<0x0A>");
      if (!newline)
        throw UserError(
            "the tokenizer has no <sep> and no piece for the separator; a template of visible text is "
            "needed");
      format.separator = {*newline};
    }
  }
  return format;
}

SequenceFormat text_format(const Tokenizer& tokenizer) {
  return {{tokenizer.begin_id()}, {}, tokenizer.end_id()};
}

}  // namespace calque

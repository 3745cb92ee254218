// Checks of a SentencePiece model from elsewhere, before the library reads it: SentencePiece does not
// validate its tables. And what can be told of its tokens from its tables.
#pragma once

#include <string>
#include <string_view>

namespace calque {

constexpr std::string_view space_mark = "\xE2\x96\x81";  // "▁", a space in the text of a piece

// Throws a UserError that says what is wrong. `name` is the file's, for the message.
void check_sentence_piece(const std::string& model, const std::string& name);

// Whether the pieces of a text are those of its words, see TokenizerModel::encodes_words_apart(). `model`
// must have passed the check.
bool has_separate_words(const std::string& model);

}  // namespace calque

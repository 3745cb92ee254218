// Checks of a SentencePiece model from elsewhere, before the library reads it: SentencePiece does not
// validate its tables.
#pragma once

#include <string>

namespace calque {

// Throws a UserError that says what is wrong. `name` is the file's, for the message.
void check_sentence_piece(const std::string& model, const std::string& name);

}  // namespace calque

// Segments: splits a long line at the ends of sentences, then of clauses, then between words, so that each
// part has a length that the model was trained on.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

// The sentences of a text, without the spaces between them.
std::vector<std::string> split_sentences(std::string_view text);

// Parts that `fits` accepts, and single words that it does not. Joined by spaces they are the text again,
// except for repeated spaces.
std::vector<std::string> split_text(std::string_view text,
                                    const std::function<bool(std::string_view part)>& fits);

}  // namespace calque

// Segments: a long line cut where a reader would pause (ends of sentences, then clauses, then words), so that
// each part is of a length that a model knows.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

// The sentences of a text, without the blanks between them.
std::vector<std::string> split_sentences(std::string_view text);

// Parts that `fits` accepts (or single characters). Joined by blanks they are the text again, but for runs of
// blanks, and for blanks where a single word was too long.
std::vector<std::string> split_text(std::string_view text,
                                    const std::function<bool(std::string_view part)>& fits);

}  // namespace calque

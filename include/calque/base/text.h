// Text: UTF-8 validation, code points, width on a terminal, and suggestions for mistyped names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

// The offset of the first invalid byte of UTF-8, or nullopt if the text is valid. Overlong forms, surrogates
// and code points past U+10FFFF are invalid.
std::optional<size_t> find_invalid_utf8(std::string_view text);

// How to convert a file that is not UTF-8.
std::string encoding_help(const std::string& file);

// The code point at offset `at`; advances `at` past it. The text must be valid UTF-8.
char32_t next_code_point(std::string_view text, size_t& at);

// The width of the text in terminal columns. Wide East Asian characters and emoji take two columns, combining
// marks none.
size_t display_width(std::string_view text);

// Shortens the text to at most `columns` terminal columns; "…" marks the cut. Control characters become
// spaces and invalid bytes become U+FFFD, so that the result is valid UTF-8.
std::string shorten(std::string_view text, size_t columns);

// The candidate most similar to a mistyped name by edit distance, or nullopt if none is similar enough.
std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean X?", or an empty string if no candidate is similar enough.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// As a word of a shell's command line: quoted where it has to be.
std::string shell_quoted(const std::string& word);

std::string join(const std::vector<std::string>& parts, std::string_view between);

}  // namespace calque

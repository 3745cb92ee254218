// Unicode: code points, their categories and lower case, from ICU's tables. White space is defined as in
// Python, because the metrics must match Python implementations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace calque {

// Invalid bytes of UTF-8 become U+FFFD.
std::u32string code_points(std::string_view text);
std::string to_utf8(std::u32string_view points);

// Full Unicode lower case: includes the final sigma and mappings that change the length, but no rules of
// single languages.
std::string lower_case(std::string_view text);

bool is_letter(char32_t point);       // \p{L}
bool is_number(char32_t point);       // \p{N}
bool is_punctuation(char32_t point);  // \p{P}
bool is_symbol(char32_t point);       // \p{S}
bool is_space(char32_t point);        // as in Python's str.split()

std::vector<std::u32string> split_words(std::u32string_view text);
std::u32string_view trim_end(std::u32string_view text);

// A line of text as the models see it, in training and in translating: control characters and runs of white
// space (non-breaking spaces too) become one space, with none at the ends; byte order marks disappear;
// invalid bytes become U+FFFD.
std::string clean_text(std::string_view line);

}  // namespace calque

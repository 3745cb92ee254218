// Unicode: text as code points, their categories and their lower case, by ICU's tables; white space as Python
// sees it, since the scores that we must equal are defined by Python programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace calque {

// What is not valid UTF-8 becomes U+FFFD.
std::u32string code_points(std::string_view text);
std::string to_utf8(std::u32string_view points);

// Full lower case: the final sigma and what grows longer included, no language's special rules.
std::string lower_case(std::string_view text);

bool is_letter(char32_t point);       // \p{L}
bool is_number(char32_t point);       // \p{N}
bool is_punctuation(char32_t point);  // \p{P}
bool is_symbol(char32_t point);       // \p{S}
bool is_space(char32_t point);        // what Python's str.split() splits at

std::vector<std::u32string> split_words(std::u32string_view text);
std::u32string_view trim_end(std::u32string_view text);

}  // namespace calque

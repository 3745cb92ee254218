// Text as bytes and as UTF-8: is it valid, what letters are in it, which known name was probably meant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

// The offset of the first byte that is not part of valid UTF-8 (overlong forms, surrogates and code points
// past U+10FFFF are invalid); nothing if all is valid.
std::optional<size_t> find_invalid_utf8(std::string_view text);

// The code point that begins at `at`, which is moved past it. The text must be valid UTF-8.
char32_t next_code_point(std::string_view text, size_t& at);

// How many columns a terminal needs for it (wide East Asian characters and emoji take two, combining marks
// none).
size_t display_width(std::string_view text);

// Valid UTF-8 of at most `columns` columns, «…» at the end if something was cut; control characters become
// spaces.
std::string shorten(std::string_view text, size_t columns);

// The candidate nearest to a mistyped name by edit distance, if any is near enough to be what was meant.
std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates);

// «; did you mean X?» or nothing.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

std::string join(const std::vector<std::string>& parts, std::string_view between);

}  // namespace calque

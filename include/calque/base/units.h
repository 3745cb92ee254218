// Numbers as people write and read them: «4k», «1.5M», «30m», «2h» in; «173,320», «1.2 GB», «3 min 20 s» out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace calque {

// A whole number with an optional k, M or G (thousands, millions, billions); _ and , may group digits; 1e6 is
// fine, 1.5 is not. Nothing if it is no such number.
std::optional<int64_t> parse_count(std::string_view text);

// A number with an optional unit s, m, h or d; `unit_seconds` is what a bare number counts. The answer is in
// seconds.
std::optional<double> parse_seconds(std::string_view text, double unit_seconds);

// A floating-point number, all of the text; no suffix; finite.
std::optional<double> parse_number(std::string_view text);

std::string format_count(int64_t count);     // 173,320
std::string format_bytes(int64_t bytes);     // 1.2 GB
std::string format_seconds(double seconds);  // 3 min 20 s
std::string format_share(double share);      // 12.3 %
std::string format_shortest(double value);   // 0.001, 1e-05: the fewest digits that read back the same

}  // namespace calque

// Units: parses numbers as people write them ("4k", "1.5M", "30m", "2h") and formats numbers for people
// ("173,320", "1.2 GB", "3 min 20 s").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace calque {

// Parses an integer with an optional suffix k, M or G (thousand, million, billion). Digits may be grouped
// with _ or a comma. 1e6 is valid, 1.5 is not. Returns nullopt if the text is invalid.
std::optional<int64_t> parse_count(std::string_view text);

// Parses a number with an optional unit s, m, h or d and returns seconds. `unit_seconds` is the unit of a
// plain number.
std::optional<double> parse_seconds(std::string_view text, double unit_seconds);

// Parses the whole text as a finite floating-point number without a suffix.
std::optional<double> parse_number(std::string_view text);

std::string format_count(int64_t count);                         // 173,320
std::string format_count(int64_t count, std::string_view noun);  // 1 pair, 2 pairs
std::string format_bytes(int64_t bytes);                         // 1.2 GB
std::string format_seconds(double seconds);                      // 3 min 20 s
std::string format_share(double share);                          // 12.3 %
std::string format_shortest(double value);  // 0.001, 1e-05: the fewest digits that round-trip

}  // namespace calque

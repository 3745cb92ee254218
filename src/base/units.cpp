#include "calque/base/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace calque {

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

namespace {

// Commas group thousands: 1,500 and 12,345,678 are fine, 1,5 is not.
bool groups_thousands(std::string_view text) {
  size_t since_comma = 0;
  bool any = false;
  for (const char c : text) {
    if (c == ',') {
      if (any ? since_comma != 3 : since_comma == 0 || since_comma > 3) return false;
      any = true;
      since_comma = 0;
    } else if (c >= '0' && c <= '9') {
      ++since_comma;
    } else if (any && since_comma != 3) {
      return false;
    }
  }
  return !any || since_comma == 3;
}

}  // namespace

std::optional<int64_t> parse_count(std::string_view text) {
  if (!groups_thousands(text)) return std::nullopt;
  std::string digits;
  for (const char c : text) {
    if (c != '_' && c != ',') digits += c;
  }
  double scale = 1;
  if (!digits.empty()) {
    switch (digits.back()) {
      case 'k':
      case 'K':
        scale = 1e3;
        break;
      case 'M':
        scale = 1e6;
        break;
      case 'G':
        scale = 1e9;
        break;
    }
    if (scale != 1) digits.pop_back();
  }
  if (digits.empty() || digits.back() == 'e' || digits.back() == 'E') return std::nullopt;
  if (scale == 1) {  // exactly: a double would lose digits of large integers
    int64_t exact = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exact);
    if (error == std::errc() && end == digits.data() + digits.size()) return exact;
  }
  const auto value = parse_number(digits);
  if (!value) return std::nullopt;
  const double scaled = *value * scale;
  const double rounded = std::round(scaled);
  if (std::abs(scaled - rounded) > 1e-6 * std::abs(scaled) || std::abs(rounded) > 9e15) return std::nullopt;
  return static_cast<int64_t>(rounded);
}

std::optional<double> parse_seconds(std::string_view text, double unit_seconds) {
  double scale = unit_seconds;
  if (!text.empty()) {
    switch (text.back()) {
      case 's':
        scale = 1;
        break;
      case 'm':
        scale = 60;
        break;
      case 'h':
        scale = 3600;
        break;
      case 'd':
        scale = 86400;
        break;
      default: {
        const auto value = parse_number(text);
        return value ? std::optional(*value * scale) : std::nullopt;
      }
    }
    text.remove_suffix(1);
  }
  const auto value = parse_number(text);
  return value ? std::optional(*value * scale) : std::nullopt;
}

std::string format_count(int64_t count) {
  const std::string digits = std::to_string(count);
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t left = digits.size() - i;
    if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string format_count(int64_t count, std::string_view noun) {
  return format_count(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string format_bytes(int64_t bytes) {
  constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1000 && unit < 4) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.{}f} {}", value, value < 10 ? 1 : 0, units[unit]);
}

std::string format_seconds(double seconds) {
  if (seconds < 0.1) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string format_share(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string format_shortest(double value) { return fmt::format("{}", value); }

}  // namespace calque

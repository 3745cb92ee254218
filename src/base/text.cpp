#include "calque/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cwchar>
#include <numeric>

namespace calque {

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      ++at;
      continue;
    }
    const int length = byte >= 0xC2 && byte <= 0xDF   ? 2
                       : (byte & 0xF0) == 0xE0        ? 3
                       : byte >= 0xF0 && byte <= 0xF4 ? 4
                                                      : 0;
    if (length == 0 || at + length > text.size()) return at;
    for (int i = 1; i < length; ++i) {
      if ((static_cast<unsigned char>(text[at + i]) & 0xC0) != 0x80) return at;
    }
    const auto second = static_cast<unsigned char>(text[at + 1]);
    const bool overlong = (byte == 0xE0 && second < 0xA0) || (byte == 0xF0 && second < 0x90);
    const bool surrogate = byte == 0xED && second >= 0xA0;
    const bool too_large = byte == 0xF4 && second >= 0x90;
    if (overlong || surrogate || too_large) return at;
    at += length;
  }
  return std::nullopt;
}

char32_t next_code_point(std::string_view text, size_t& at) {
  const auto byte = static_cast<unsigned char>(text[at++]);
  if (byte < 0x80) return byte;
  int more = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
  char32_t point = byte & (0x3F >> more);
  while (more-- > 0 && at < text.size())
    point = (point << 6) | (static_cast<unsigned char>(text[at++]) & 0x3F);
  return point;
}

namespace {

size_t columns_of(char32_t point) {
  if (point < 0x20 || (point >= 0x7F && point < 0xA0)) return 1;  // printed as a space
  const bool combining = (point >= 0x300 && point <= 0x36F) || point == 0x200B || point == 0x200D ||
                         (point >= 0xFE00 && point <= 0xFE0F) || (point >= 0x20D0 && point <= 0x20FF);
  if (combining) return 0;
  const bool wide = (point >= 0x1100 && point <= 0x115F) || (point >= 0x2E80 && point <= 0xA4CF) ||
                    (point >= 0xAC00 && point <= 0xD7A3) || (point >= 0xF900 && point <= 0xFAFF) ||
                    (point >= 0xFE30 && point <= 0xFE6F) || (point >= 0xFF00 && point <= 0xFF60) ||
                    (point >= 0x1F300 && point <= 0x1FAFF) || (point >= 0x20000 && point <= 0x3FFFD);
  return wide ? 2 : 1;
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t columns = 0;
  for (size_t at = 0; at < text.size();) columns += columns_of(next_code_point(text, at));
  return columns;
}

std::string shorten(std::string_view text, size_t columns) {
  std::string shown;
  size_t used = 0;
  size_t fits = 0;  // bytes of `shown` that leave a column for "…"
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    std::string piece;
    if (find_invalid_utf8(text.substr(begin, std::min<size_t>(4, text.size() - begin))) == 0) {
      ++at;
      piece = "\xEF\xBF\xBD";
      used += 1;
    } else {
      const char32_t point = next_code_point(text, at);
      used += columns_of(point);
      const bool control = point < 0x20 || (point >= 0x7F && point < 0xA0);
      piece = control ? " " : std::string(text.substr(begin, at - begin));
    }
    if (used > columns) return shown.substr(0, fits) + "…";
    shown += piece;
    if (used + 1 <= columns) fits = shown.size();
  }
  return shown;
}

namespace {

// "lr_rate" abbreviates "learning_rate": same first letter, and all its letters occur in the same order.
bool is_abbreviation(std::string_view name, std::string_view candidate) {
  if (name.size() < 4 || candidate.empty() || name.front() != candidate.front()) return false;
  size_t at = 0;
  for (const char c : candidate) at += at < name.size() && name[at] == c;
  return at == name.size();
}

}  // namespace

std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t above = row[j];
        row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (name[i - 1] == candidate[j - 1] ? 0 : 1)});
        diagonal = above;
      }
    }
    // A name that contains a candidate, is part of one or abbreviates one counts as similar, whatever the
    // edit distance.
    const bool part =
        name.size() >= 3 && (candidate.find(name) != std::string::npos || name.find(candidate) != name.npos);
    const size_t distance =
        part || is_abbreviation(name, candidate) ? std::min<size_t>(row.back(), 2) : row.back();
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const auto meant = nearest(name, candidates);
  return meant ? "; did you mean " + *meant + "?" : "";
}

std::string encoding_help(const std::string& file) {
  return fmt::format(
      "from Latin-1: iconv -f LATIN1 -t UTF-8 {0} > {0}.utf8 (Windows: -f CP1252, or -f UTF-16)",
      shell_quoted(file));
}

std::string shell_quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./=:,+@%").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string all;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) all += between;
    all += parts[i];
  }
  return all;
}

}  // namespace calque

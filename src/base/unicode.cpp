#include "calque/base/unicode.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include "calque/base/text.h"

namespace calque {

std::u32string code_points(std::string_view text) {
  std::u32string points;
  points.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t rest = std::min<size_t>(4, text.size() - at);
    // A later character that the four-byte window cuts off is reported as invalid at offset 1 or more, not 0.
    if (static_cast<unsigned char>(text[at]) >= 0x80 && find_invalid_utf8(text.substr(at, rest)) == 0) {
      points.push_back(0xFFFD);
      ++at;
    } else {
      points.push_back(next_code_point(text, at));
    }
  }
  return points;
}

std::string to_utf8(std::u32string_view points) {
  std::string text;
  text.reserve(points.size());
  for (const char32_t point : points) {
    if (point < 0x80) {
      text.push_back(static_cast<char>(point));
    } else if (point < 0x800) {
      text.push_back(static_cast<char>(0xC0 | (point >> 6)));
      text.push_back(static_cast<char>(0x80 | (point & 0x3F)));
    } else if (point < 0x10000) {
      text.push_back(static_cast<char>(0xE0 | (point >> 12)));
      text.push_back(static_cast<char>(0x80 | ((point >> 6) & 0x3F)));
      text.push_back(static_cast<char>(0x80 | (point & 0x3F)));
    } else {
      text.push_back(static_cast<char>(0xF0 | (point >> 18)));
      text.push_back(static_cast<char>(0x80 | ((point >> 12) & 0x3F)));
      text.push_back(static_cast<char>(0x80 | ((point >> 6) & 0x3F)));
      text.push_back(static_cast<char>(0x80 | (point & 0x3F)));
    }
  }
  return text;
}

std::string lower_case(std::string_view text) {
  auto lowered =
      icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
  std::string result;
  lowered.toLower(icu::Locale::getRoot()).toUTF8String(result);
  return result;
}

namespace {

bool has_category(char32_t point, uint32_t mask) {
  return (U_GET_GC_MASK(static_cast<UChar32>(point)) & mask) != 0;
}

}  // namespace

bool is_letter(char32_t point) { return has_category(point, U_GC_L_MASK); }
bool is_number(char32_t point) { return has_category(point, U_GC_N_MASK); }
bool is_punctuation(char32_t point) { return has_category(point, U_GC_P_MASK); }
bool is_symbol(char32_t point) { return has_category(point, U_GC_S_MASK); }

bool is_space(char32_t point) {
  return (point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x20) || point == 0x85 ||
         point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028 ||
         point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000;
}

std::vector<std::u32string> split_words(std::u32string_view text) {
  std::vector<std::u32string> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && !is_space(text[end])) ++end;
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::u32string_view trim_end(std::u32string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string clean_text(std::string_view line) {
  // Most lines are printable ASCII and Latin letters with single spaces: nothing to do.
  bool is_clean = !line.starts_with(' ') && !line.ends_with(' ') && !find_invalid_utf8(line);
  for (size_t i = 0; is_clean && i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    is_clean = (byte > 0x20 && byte < 0x7F) || (byte >= 0xE4 && byte != 0xEF) ||
               (byte >= 0x80 && byte < 0xE1 && byte != 0xC2) || (byte == 0x20 && line[i + 1] != ' ');
  }
  if (is_clean) return std::string(line);
  std::u32string points = code_points(line);
  for (char32_t& point : points) {
    if (point < 0x20 || (point >= 0x7F && point < 0xA0)) point = U' ';
  }
  std::erase(points, U'\uFEFF');  // a byte order mark, or no space at all
  std::string text;
  for (const auto& word : split_words(points)) text += (text.empty() ? "" : " ") + to_utf8(word);
  return text;
}

}  // namespace calque

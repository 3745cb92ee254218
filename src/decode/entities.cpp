#include "calque/decode/entities.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "calque/base/unicode.h"

namespace calque {
namespace {

// The names of HTML 4 for U+00A0 … U+00FF, in order.
constexpr std::array latin1_names = {
    "nbsp",   "iexcl",  "cent",   "pound",  "curren", "yen",    "brvbar", "sect",   "uml",    "copy",
    "ordf",   "laquo",  "not",    "shy",    "reg",    "macr",   "deg",    "plusmn", "sup2",   "sup3",
    "acute",  "micro",  "para",   "middot", "cedil",  "sup1",   "ordm",   "raquo",  "frac14", "frac12",
    "frac34", "iquest", "Agrave", "Aacute", "Acirc",  "Atilde", "Auml",   "Aring",  "AElig",  "Ccedil",
    "Egrave", "Eacute", "Ecirc",  "Euml",   "Igrave", "Iacute", "Icirc",  "Iuml",   "ETH",    "Ntilde",
    "Ograve", "Oacute", "Ocirc",  "Otilde", "Ouml",   "times",  "Oslash", "Ugrave", "Uacute", "Ucirc",
    "Uuml",   "Yacute", "THORN",  "szlig",  "agrave", "aacute", "acirc",  "atilde", "auml",   "aring",
    "aelig",  "ccedil", "egrave", "eacute", "ecirc",  "euml",   "igrave", "iacute", "icirc",  "iuml",
    "eth",    "ntilde", "ograve", "oacute", "ocirc",  "otilde", "ouml",   "divide", "oslash", "ugrave",
    "uacute", "ucirc",  "uuml",   "yacute", "thorn",  "yuml"};
constexpr std::array<std::pair<const char*, char32_t>, 16> other_names = {{{"amp", U'&'},
                                                                           {"lt", U'<'},
                                                                           {"gt", U'>'},
                                                                           {"quot", U'"'},
                                                                           {"apos", U'\''},
                                                                           {"OElig", U'Œ'},
                                                                           {"oelig", U'œ'},
                                                                           {"euro", U'€'},
                                                                           {"hellip", U'…'},
                                                                           {"ndash", U'–'},
                                                                           {"mdash", U'—'},
                                                                           {"lsquo", U'‘'},
                                                                           {"rsquo", U'’'},
                                                                           {"ldquo", U'“'},
                                                                           {"rdquo", U'”'},
                                                                           {"nnbsp", U'\u202f'}}};

// 0: not a character.
char32_t referenced(const std::string& name) {
  if (name.starts_with('#')) {
    const bool hexadecimal = name.size() > 1 && (name[1] | 0x20) == 'x';
    const char* digits = name.c_str() + (hexadecimal ? 2 : 1);
    char* end = nullptr;
    const unsigned long value = std::strtoul(digits, &end, hexadecimal ? 16 : 10);
    const bool valid =
        end != digits && *end == 0 && value > 0 && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
    return valid ? static_cast<char32_t>(value) : 0;
  }
  const auto latin1 = std::find(latin1_names.begin(), latin1_names.end(), name);
  if (latin1 != latin1_names.end()) return static_cast<char32_t>(0xA0 + (latin1 - latin1_names.begin()));
  const auto other = std::find_if(other_names.begin(), other_names.end(),
                                  [&](const auto& one) { return one.first == name; });
  return other == other_names.end() ? 0 : other->second;
}

}  // namespace

std::string decode_entities(const std::string& text) {
  std::string decoded;
  for (size_t at = 0; at < text.size();) {
    constexpr size_t longest_reference = 12;
    const size_t length =
        text[at] == '&' ? std::string_view(text).substr(at, longest_reference).find(';') : std::string::npos;
    const char32_t found = length == std::string::npos ? 0 : referenced(text.substr(at + 1, length - 1));
    if (found != 0) {
      decoded += to_utf8(std::u32string(1, found));
      at += length + 1;
    } else {
      decoded += text[at++];
    }
  }
  return decoded;
}

std::string encode_entities(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    if (c == '&') {
      encoded += "&amp;";
    } else if (c == '<') {
      encoded += "&lt;";
    } else if (c == '>') {
      encoded += "&gt;";
    } else {
      encoded += c;
    }
  }
  return encoded;
}

}  // namespace calque

#include "calque/decode/segments.h"

#include <algorithm>
#include <array>

#include "calque/base/unicode.h"

namespace calque {
namespace {

bool ends_sentence(char32_t c) { return c == U'.' || c == U'!' || c == U'?' || c == U'…'; }
bool closes(char32_t c) { return c == U'"' || c == U'»' || c == U'”' || c == U'’' || c == U')' || c == U']'; }
bool ends_clause(char32_t c) { return c == U',' || c == U';' || c == U':' || c == U'–' || c == U'—'; }

// A full stop after these ends no sentence: titles and initials.
bool is_abbreviation_before(std::u32string_view text, size_t stop) {
  size_t begin = stop;
  while (begin > 0 && !is_space(text[begin - 1])) --begin;
  const std::u32string_view word = text.substr(begin, stop - begin);
  constexpr std::array<std::u32string_view, 9> titles = {U"MM", U"Mme", U"Mlle", U"Dr", U"Pr",
                                                         U"St", U"Ste", U"cf",   U"av"};
  return (word.size() == 1 && is_letter(word[0])) ||
         std::find(titles.begin(), titles.end(), word) != titles.end();
}

std::u32string_view trim_both(std::u32string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return trim_end(text);
}

std::vector<std::u32string> sentences_of(std::u32string_view text) {
  std::vector<std::u32string> parts;
  size_t begin = 0;
  const auto cut = [&](size_t end) {
    const auto part = trim_both(text.substr(begin, end - begin));
    if (!part.empty()) parts.emplace_back(part);
    begin = end;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (!ends_sentence(text[i])) continue;
    const bool only_stop = text[i] == U'.' && (i + 1 == text.size() || !ends_sentence(text[i + 1]));
    if (only_stop && is_abbreviation_before(text, i)) continue;
    size_t end = i + 1;
    while (end < text.size() && (ends_sentence(text[end]) || closes(text[end]) ||
                                 (is_space(text[end]) && end + 1 < text.size() && text[end + 1] == U'»')))
      ++end;
    i = end - 1;
    if (end < text.size() && !is_space(text[end])) continue;
    size_t next = end;
    while (next < text.size() && is_space(text[next])) ++next;
    // A sentence goes on in lower case after «?» inside a quotation, or after «etc.».
    const bool goes_on = next < text.size() && is_letter(text[next]) &&
                         lower_case(to_utf8(text.substr(next, 1))) == to_utf8(text.substr(next, 1));
    if (!goes_on) cut(end);
  }
  cut(text.size());
  return parts;
}

// The place to cut nearest to the middle: behind a clause, else between words, else anywhere.
size_t best_cut(std::u32string_view text) {
  size_t at_clause = 0, at_word = 0;
  const size_t middle = text.size() / 2;
  const auto nearer = [&](size_t place, size_t best) {
    const auto distance = [&](size_t p) { return p > middle ? p - middle : middle - p; };
    return best == 0 || distance(place) < distance(best);
  };
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (!is_space(text[i])) continue;
    if (nearer(i, at_word)) at_word = i;
    if (ends_clause(text[i - 1]) && nearer(i, at_clause)) at_clause = i;
  }
  // A clause at the far end of a long text helps little.
  const bool good_clause = at_clause > text.size() / 8 && at_clause < text.size() - text.size() / 8;
  return good_clause ? at_clause : at_word > 0 ? at_word : middle;
}

void split_until_it_fits(std::u32string_view text, const std::function<bool(std::string_view)>& fits,
                         std::vector<std::string>& parts) {
  text = trim_both(text);
  if (text.empty()) return;
  std::string part = to_utf8(text);
  if (text.size() == 1 || fits(part)) {
    parts.push_back(std::move(part));
    return;
  }
  const size_t cut = best_cut(text);
  split_until_it_fits(text.substr(0, cut), fits, parts);
  split_until_it_fits(text.substr(cut), fits, parts);
}

}  // namespace

std::vector<std::string> split_sentences(std::string_view text) {
  std::vector<std::string> parts;
  for (const auto& sentence : sentences_of(code_points(text))) parts.push_back(to_utf8(sentence));
  return parts;
}

std::vector<std::string> split_text(std::string_view text,
                                    const std::function<bool(std::string_view)>& fits) {
  std::vector<std::string> parts;
  for (const auto& sentence : sentences_of(code_points(text))) split_until_it_fits(sentence, fits, parts);
  return parts;
}

}  // namespace calque

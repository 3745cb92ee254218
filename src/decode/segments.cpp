#include "calque/decode/segments.h"

#include <unicode/brkiter.h>
#include <unicode/filteredbrk.h>
#include <unicode/locid.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "calque/base/unicode.h"

namespace calque {
namespace {

bool ends_clause(char32_t c) { return c == U',' || c == U';' || c == U':' || c == U'–' || c == U'—'; }

std::u32string_view trim_both(std::u32string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return trim_end(text);
}

// ICU's sentence boundaries, without breaks after French abbreviations.
std::unique_ptr<icu::BreakIterator> make_sentence_iterator() {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Locale french("fr", "", "", "ss=standard");
  std::unique_ptr<icu::BreakIterator> plain(icu::BreakIterator::createSentenceInstance(french, status));
  std::unique_ptr<icu::FilteredBreakIteratorBuilder> builder(
      icu::FilteredBreakIteratorBuilder::createInstance(french, status));
  if (U_FAILURE(status)) throw std::runtime_error(std::string("ICU: ") + u_errorName(status));
  for (const char* abbreviation : {"M.", "MM.", "Mme.", "Mlle.", "Dr.", "Pr.", "St.", "Ste.", "cf.", "av.",
                                   "etc.", "p.", "ex.", "env.", "apr."}) {
    builder->suppressBreakAfter(icu::UnicodeString::fromUTF8(abbreviation), status);
  }
  std::unique_ptr<icu::BreakIterator> filtered(builder->wrapIteratorWithFilter(plain.release(), status));
  if (U_FAILURE(status)) throw std::runtime_error(std::string("ICU: ") + u_errorName(status));
  return filtered;
}

// "J. Martin": an initial does not end a sentence.
bool ends_in_initial(std::u32string_view text) {
  text = trim_end(text);
  return text.size() >= 2 && text.back() == U'.' && is_letter(text[text.size() - 2]) &&
         (text.size() == 2 || is_space(text[text.size() - 3]));
}

bool begins_in_lower_case(std::u32string_view text) {
  text = trim_both(text);
  if (text.empty() || !is_letter(text.front())) return false;
  const std::string first = to_utf8(text.substr(0, 1));
  return lower_case(first) == first;
}

// French puts a space before closing marks, and ICU a boundary: the sentence ends after them.
size_t after_closing_marks(std::u32string_view text, size_t end) {
  for (size_t i = end; i < text.size(); ++i) {
    if (text[i] == U'»' || text[i] == U'!' || text[i] == U'?') end = i + 1;
    if (end <= i && !is_space(text[i])) break;
  }
  return end;
}

std::vector<std::u32string> sentences_of(std::u32string_view text) {
  const std::unique_ptr<icu::BreakIterator> iterator = make_sentence_iterator();
  icu::UnicodeString units;
  std::vector<int32_t> point_of;  // the code point that begins at each UTF-16 unit
  for (size_t i = 0; i < text.size(); ++i) {
    const int32_t before = units.length();
    units.append(static_cast<UChar32>(text[i]));
    for (int32_t unit = before; unit < units.length(); ++unit) point_of.push_back(static_cast<int32_t>(i));
  }
  point_of.push_back(static_cast<int32_t>(text.size()));
  iterator->setText(units);
  std::vector<std::u32string> parts;
  size_t begin = 0;
  const auto cut = [&](size_t end) {
    const auto part = trim_both(text.substr(begin, end - begin));
    if (!part.empty()) parts.emplace_back(part);
    begin = end;
  };
  size_t reached = 0;  // boundaries inside a row of closing marks end where the first of them does
  for (int32_t at = iterator->next(); at != icu::BreakIterator::DONE; at = iterator->next()) {
    const auto place = static_cast<size_t>(point_of[static_cast<size_t>(at)]);
    if (place < reached) continue;
    const size_t end = reached = after_closing_marks(text, place);
    if (end <= begin) continue;
    // Looks only a little ahead: the rest may be long.
    if (end < text.size() &&
        (begins_in_lower_case(text.substr(end, 8)) || ends_in_initial(text.substr(begin, end - begin))))
      continue;
    cut(end);
  }
  cut(text.size());
  return parts;
}

// The cut nearest to the middle: after a clause, else between words. Nothing inside a single word.
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
  // A clause near either end of a long text helps little.
  const bool good_clause = at_clause > text.size() / 8 && at_clause < text.size() - text.size() / 8;
  return good_clause ? at_clause : at_word;
}

void split_until_it_fits(std::u32string_view text, const std::function<bool(std::string_view)>& fits,
                         std::vector<std::string>& parts) {
  text = trim_both(text);
  if (text.empty()) return;
  std::string part = to_utf8(text);
  const size_t cut = fits(part) ? 0 : best_cut(text);
  if (cut == 0) {
    parts.push_back(std::move(part));
    return;
  }
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

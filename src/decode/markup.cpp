#include "calque/decode/markup.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "calque/base/text.h"
#include "calque/base/unicode.h"
#include "calque/decode/entities.h"

namespace calque {
namespace {

constexpr std::array inline_tags = {"a",    "abbr", "b",    "bdi",  "bdo",   "big",  "cite",   "data",
                                    "del",  "dfn",  "em",   "font", "i",     "img",  "ins",    "kbd",
                                    "mark", "q",    "s",    "samp", "small", "span", "strike", "strong",
                                    "sub",  "sup",  "time", "tt",   "u",     "var",  "wbr"};
constexpr std::array void_tags = {"img", "wbr"};  // those among the inline ones that enclose nothing
constexpr std::array copied_tags = {"script", "style", "code", "pre", "textarea", "svg", "math"};

template <size_t size>
bool lists(const std::array<const char*, size>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string lower_ascii(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return text;
}

constexpr std::string_view closing_marks = ".,;:!?";
constexpr size_t most_look_ups = 20'000'000;
constexpr size_t deepest_nesting = 50;  // of elements in a sentence; deeper ones end it

bool is_white(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

struct Tag {
  std::string text, name;
  bool closes = false, is_single = false, is_copied = false;
};

// The tag, comment or declaration at `at`, which is '<'. No text: it is a plain character.
Tag read_tag(const std::string& document, size_t at) {
  Tag tag;
  const auto whole = [&](const char* end, size_t length) {
    const size_t found = document.find(end, at);
    tag.text = document.substr(at, found == std::string::npos ? found : found + length - at);
    tag.is_single = true;
  };
  if (document.compare(at, 4, "<!--") == 0) return whole("-->", 3), tag;
  if (document.compare(at, 9, "<![CDATA[") == 0) return whole("]]>", 3), tag;
  if (document.compare(at, 2, "<!") == 0 || document.compare(at, 2, "<?") == 0) return whole(">", 1), tag;
  size_t from = at + 1;
  tag.closes = from < document.size() && document[from] == '/';
  if (tag.closes) ++from;
  size_t end = from;
  while (end < document.size() && !is_white(document[end]) && document[end] != '>' && document[end] != '/' &&
         document[end] != '<')
    ++end;
  const auto first = end > from ? static_cast<unsigned char>(document[from]) : 0u;
  const bool is_name = (first | 0x20u) >= 'a' && (first | 0x20u) <= 'z';
  if (!is_name && first != '_' && first < 128) return {};
  tag.name = document.substr(from, end - from);
  for (char quote = 0; end < document.size(); ++end) {  // '>' inside an attribute's quotes does not end it
    const char c = document[end];
    if (quote != 0) {
      quote = c == quote ? '\0' : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '<') {
      return {};
    } else if (c == '>') {
      tag.text = document.substr(at, end + 1 - at);
      tag.is_single = document[end - 1] == '/';
      const std::string lower = lower_ascii(tag.text);
      for (const char* mark : {"translate=\"no\"", "translate='no'", "translate=no", "notranslate"})
        tag.is_copied = tag.is_copied || lower.find(mark) != std::string::npos;
      return tag;
    }
  }
  return {};  // never closed
}

}  // namespace

// Collects a segment: its text and the elements in it, until a tag that ends sentences.
namespace {

// Behind the closing tag of an element whose content begins at `at`; elements of its name may be inside.
// document: in lower case.
size_t end_of_element(const std::string& document, const std::string& name, size_t at) {
  for (int depth = 1; depth > 0;) {
    at = document.find('<', at);
    if (at == std::string::npos) return document.size();
    const bool closes = document.compare(at + 1, 1, "/") == 0;
    const size_t from = at + (closes ? 2 : 1), end = from + name.size();
    const bool is_it =
        document.compare(from, name.size(), name) == 0 &&
        (end >= document.size() || is_white(document[end]) || document[end] == '>' || document[end] == '/');
    if (is_it) depth += closes ? -1 : 1;
    at = is_it ? document.find('>', end) : at + 1;
    if (at == std::string::npos) return document.size();
    if (is_it) ++at;
  }
  return at;
}

}  // namespace

struct Markup::Reader {
  Markup& markup;
  std::string between = {};  // copied since the last segment
  std::string raw = {};      // the segment so far, as it is in the document
  std::string text = {};     // the same without tags, decoded
  size_t words = 0;          // begun so far
  bool in_word = false;
  std::vector<Span> open = {{}};  // the segment, and the elements that are open in it
  std::vector<std::string> names = {""};

  void add_text(const std::string& given) {
    raw += given;
    const std::string decoded = decode_entities(given);
    for (const char32_t point : code_points(decoded)) {
      words += !is_space(point) && !in_word;
      in_word = !is_space(point);
    }
    text += decoded;
  }

  void add_single(const std::string& verbatim) {
    raw += verbatim;
    if (words == 0 && open.size() == 1 && open.front().children.empty()) {  // before the segment
      between += raw;
      raw.clear();
      text.clear();
      return;
    }
    Span span{verbatim, "", words, words};
    span.follows_a_word = in_word;
    span.end_offset = text.size();
    open.back().children.push_back(std::move(span));
  }

  void open_tag(const Tag& tag) {
    raw += tag.text;
    open.push_back({tag.text, "", in_word ? words - 1 : words, 0});  // inside a word: the whole word
    open.back().begin_offset = text.size();
    names.push_back(lower_ascii(tag.name));
  }

  void close_top(const std::string& closing) {
    Span span = std::move(open.back());
    open.pop_back();
    names.pop_back();
    span.close = closing;
    span.end_offset = text.size();
    span.end = span.begin_offset == span.end_offset ? span.begin : std::max(words, span.begin);
    open.back().children.push_back(std::move(span));
  }

  // False: its opening tag is not in this segment.
  bool close_tag(const Tag& tag) {
    const std::string name = lower_ascii(tag.name);
    if (std::find(names.begin() + 1, names.end(), name) == names.end()) return false;
    raw += tag.text;
    while (names.back() != name) close_top("");
    close_top(tag.text);
    return true;
  }

  // Elements that are still open are closed by no tag of this segment.
  void end_segment() {
    while (open.size() > 1) close_top("");
    std::string cleaned = clean_text(text);
    if (cleaned.empty()) {
      between += raw;
    } else {
      std::vector<Span> trailing;  // single tags behind the last word
      for (auto& tags = open.front().children; !tags.empty() && tags.back().is_single() &&
                                               tags.back().begin == words && !tags.back().follows_a_word;
           tags.pop_back())
        trailing.push_back(std::move(tags.back()));
      const std::u32string points = code_points(text);
      const auto first = std::find_if_not(points.begin(), points.end(), is_space);
      const auto last = std::find_if_not(points.rbegin(), points.rend(), is_space).base();
      markup.parts_.push_back({between + to_utf8(std::u32string(points.begin(), first)), true});
      markup.texts_.push_back(std::move(cleaned));
      for (Span& span : open.front().children) mark_neighbours(span);
      markup.inside_.push_back(std::move(open.front().children));
      between = to_utf8(std::u32string(last, points.end()));
      add_trailing(trailing);
    }
    raw.clear();
    text.clear();
    words = 0;
    in_word = false;
    open.assign(1, {});
  }

  // Puts the tags, the last one first, back between the white space at the end.
  void add_trailing(const std::vector<Span>& tags) {
    const size_t end_of_words = text.size() - between.size();
    const std::string space = std::exchange(between, "");
    size_t at = 0;
    for (auto tag = tags.rbegin(); tag != tags.rend(); ++tag) {
      const size_t offset = std::clamp(tag->end_offset, end_of_words + at, text.size()) - end_of_words;
      between += space.substr(at, offset - at) + tag->open;
      at = offset;
    }
    between += space.substr(at);
  }

  void mark_neighbours(Span& span) const {
    const size_t end = span.end_offset;
    size_t next = end;  // French puts a space before some marks
    for (const std::string_view space : {" ", "\u00a0", "\u202f"}) {
      if (text.compare(end, space.size(), space) == 0) next = end + space.size();
    }
    span.before_punctuation = end > 0 && next < text.size() && !is_white(text[end - 1]) &&
                              closing_marks.find(text[next]) != std::string_view::npos;
    span.precedes_a_word = end < text.size() && !is_white(text[end]);
    for (Span& child : span.children) mark_neighbours(child);
  }
};

Markup::Markup(const std::string& document, const MarkupOptions& options) {
  Reader reader{*this};
  const std::string lower = lower_ascii(document);
  size_t text_from = 0;
  for (size_t at = 0; at < document.size();) {
    const Tag tag = document[at] == '<' ? read_tag(document, at) : Tag{};
    if (tag.text.empty()) {
      ++at;
      continue;
    }
    reader.add_text(document.substr(text_from, at - text_from));
    at += tag.text.size();
    const std::string name = lower_ascii(tag.name);
    const bool copies =
        tag.is_copied || options.ignored.contains(name) || (options.is_html && lists(copied_tags, name));
    const bool breaks = options.is_html
                            ? !name.empty() && !lists(inline_tags, name) && !lists(copied_tags, name)
                            : options.breaking.contains(name);
    if (copies && !tag.closes && !tag.is_single && !lists(void_tags, name)) {
      const size_t stop = end_of_element(lower, name, at);
      if (breaks) {
        reader.end_segment();
        reader.between += tag.text + document.substr(at, stop - at);
      } else {
        reader.add_single(tag.text + document.substr(at, stop - at));
      }
      at = stop;
    } else if (breaks || reader.open.size() > deepest_nesting || (tag.closes && !reader.close_tag(tag))) {
      reader.end_segment();
      reader.between += tag.text;
    } else if (!tag.closes && (tag.is_single || lists(void_tags, name))) {
      reader.add_single(tag.text);
    } else if (!tag.closes) {
      reader.open_tag(tag);
    }
    text_from = at;
  }
  reader.add_text(document.substr(text_from));
  reader.end_segment();
  parts_.push_back({reader.between, false});
}

// The tags of a segment beside the words of its translation.
struct Markup::Placement {
  const AlignedText& text;
  bool by_alignment;  // false: too many tags and words to look each up; by their relative place
  std::vector<std::string> before, inside_end, after;  // `inside_end`: before a word's last punctuation

  Placement(const AlignedText& aligned, size_t spans)
      : text(aligned),
        by_alignment(spans * aligned.words.size() <= most_look_ups),
        before(aligned.words.size() + 1),
        inside_end(aligned.words.size() + 1),
        after(aligned.words.size() + 1) {}

  size_t source_of(size_t word) const { return word < text.sources.size() ? text.sources[word] : word; }

  // The words of the translation, among `low` … `high` - 1, that a span goes around.
  std::pair<size_t, size_t> find(const Span& span, size_t low, size_t high) const {
    if (!by_alignment) {
      const auto place = [&](size_t source) {
        return std::clamp(source * text.words.size() / std::max<size_t>(1, text.source_words), low, high);
      };
      return {place(span.begin), place(span.end)};
    }
    if (span.begin == span.end) {  // before the first word that belongs to what followed it
      size_t at = low;
      while (at < high && source_of(at) < span.begin) ++at;
      return {at, at};
    }
    size_t first = high, last = low, nearest = low, distance = std::string::npos;
    for (size_t t = low; t < high; ++t) {
      const size_t source = source_of(t);
      if (source >= span.begin && source < span.end) {
        first = std::min(first, t);
        last = t + 1;
      }
      const size_t away = source < span.begin ? span.begin - source : source - span.begin;
      if (away < distance) {
        distance = away;
        nearest = t;
      }
    }
    if (first < last) return {first, last};
    return {nearest, std::min(nearest + 1, high)};
  }

  // Siblings in the order of the translation; where two overlap, the first keeps the words.
  void add(const std::vector<Span>& spans, size_t low, size_t high) {
    std::vector<std::pair<std::pair<size_t, size_t>, const Span*>> placed;
    for (const Span& span : spans) placed.emplace_back(find(span, low, high), &span);
    std::stable_sort(placed.begin(), placed.end(),
                     [](const auto& a, const auto& b) { return a.first.first < b.first.first; });
    size_t free = low;
    for (const auto& [range, span] : placed) {
      const size_t first = std::max(free, range.first), last = std::max(first, range.second);
      if (span->is_single()) {
        add_single(*span, first);
        continue;
      }
      if (first == last) {  // nothing of the translation belongs to it
        std::string& place = first == high && high > low ? after[high - 1] : before[first];
        append_all(*span, place);
        continue;
      }
      before[first] += span->open;
      add(span->children, first, last);
      std::string& close = span->before_punctuation ? inside_end[last - 1] : after[last - 1];
      if (span->before_punctuation)  // what its children closed behind the punctuation comes before it too
        inside_end[last - 1] += std::exchange(after[last - 1], "");
      close += span->close;
      free = last;
    }
  }

  static void append_all(const Span& span, std::string& place) {
    place += span.open;
    for (const Span& child : span.children) append_all(child, place);
    place += span.close;
  }

  // With the spaces that it had.
  void add_single(const Span& span, size_t at) {
    const bool at_end = at == text.words.size();
    if (at > 0 && span.follows_a_word && !span.precedes_a_word) {
      after[at - 1] += span.open;
    } else if (at_end) {
      before[at] += (at > 0 && !span.follows_a_word ? " " : "") + span.open;
    } else {
      before[at] += span.open + (span.precedes_a_word ? "" : " ");
    }
  }

  std::string join() const {
    std::string joined;
    for (size_t i = 0; i < text.words.size(); ++i) {
      const std::string& word = text.words[i];
      const size_t end = inside_end[i].empty() ? word.size() : word.find_last_not_of(closing_marks) + 1;
      joined += (i > 0 ? " " : "") + before[i] + encode_entities(word.substr(0, end)) + inside_end[i] +
                encode_entities(word.substr(end)) + after[i];
    }
    return joined + before.back();
  }
};

size_t Markup::count(const std::vector<Span>& spans) {
  size_t all = spans.size();
  for (const Span& span : spans) all += count(span.children);
  return all;
}

std::string Markup::join(const std::vector<AlignedText>& translations) const {
  std::string document;
  size_t segment = 0;
  for (const Part& part : parts_) {
    document += part.verbatim;
    if (!part.has_segment) continue;
    Placement placement(translations.at(segment), count(inside_[segment]));
    placement.add(inside_[segment], 0, translations[segment].words.size());
    document += placement.join();
    ++segment;
  }
  return document;
}

}  // namespace calque

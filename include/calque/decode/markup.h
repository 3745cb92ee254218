// Markup: the text of an HTML or XML document, cut into segments to translate, and the document with their
// translations. Tags inside a sentence are placed around the words that attended to the words they enclosed,
// as in Bergamot. Every tag comes out exactly once, and elements stay well nested.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace calque {

// The words of a translation, and the source word that each belongs to.
struct AlignedText {
  std::vector<std::string> words;  // joined by spaces, the translation
  std::vector<size_t> sources =
      {};  // of each word; source words are separated by spaces. Missing: its own place
  size_t source_words = 0;
};

struct MarkupOptions {
  bool is_html = true;                  // false: XML, where tags of any name stand inside sentences
  std::set<std::string> breaking = {};  // XML: names of tags that end a sentence
  std::set<std::string> ignored = {};   // names of elements whose content is copied, besides HTML's own
};

class Markup {
 public:
  explicit Markup(const std::string& document, const MarkupOptions& options = {});

  // The texts to translate, with entities decoded and white space as clean_text() leaves it.
  const std::vector<std::string>& segments() const { return texts_; }
  bool has_tags(size_t segment) const { return !inside_[segment].empty(); }
  // The document with a translation for each segment.
  std::string join(const std::vector<AlignedText>& translations) const;

 private:
  // An element, or a single tag, inside a segment: it encloses words `begin` … `end` - 1.
  struct Span {
    std::string open, close;
    size_t begin = 0, end = 0;
    std::vector<Span> children = {};
    size_t begin_offset = 0, end_offset = 0;  // in the segment's text
    bool before_punctuation = false;          // it ended inside a word, before a punctuation mark
    bool follows_a_word = false, precedes_a_word = false;  // of a single tag: without a space between

    bool is_single() const { return begin == end && close.empty(); }
  };
  struct Part {
    std::string verbatim;  // copied, before the segment
    bool has_segment = false;
  };
  struct Reader;
  struct Placement;
  static size_t count(const std::vector<Span>& spans);

  std::vector<Part> parts_;
  std::vector<std::string> texts_;
  std::vector<std::vector<Span>> inside_;  // of each segment
};

}  // namespace calque

// LineSearch: one line of text on its way through a search. It splits the line, hands out a request for each
// part, takes the results, asks again for a part whose translation loops, and joins the parts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calque/decode/search.h"

namespace calque {

class Translator;

// One way to translate a line.
struct TranslatedText {
  std::string text;
  double score = 0;               // sum over the line's parts
  double log_probability = 0;     // sum over the line's parts
  bool complete = true;           // false: a part was cut off at the length limit
  std::vector<Hypothesis> parts;  // of the line's parts, in order; empty for a part that was copied
};

struct Translation {
  std::vector<TranslatedText> best;  // the best first; one empty text for an empty line
  std::vector<std::string> sources;  // the parts that the line was translated in
  bool looped = false;               // the search repeated itself and was run again with no_repeat_ngram
  bool copied = false;               // a word too long to be language was copied
  bool cut = false;                  // a sentence too long for the model was cut between words
  const std::string& text() const { return best.front().text; }
};

class LineSearch {
 public:
  // Keeps a reference to the translator. `prefix`: text that the translation must begin with; a space at its
  // end says that its last word is complete.
  LineSearch(const Translator& translator, const std::string& line, const std::string& prefix,
             std::shared_ptr<const DecodeConfig> decode);

  bool has_next() const { return !waiting_.empty(); }
  SearchRequest next(int64_t id);  // a request for the next part, under this id
  void accept(int64_t id, std::vector<Hypothesis> hypotheses);
  bool is_done() const { return waiting_.empty() && requested_.empty(); }
  Translation finish() const;  // parts without a result are left out

  // For showing the translation while it is made: the parts that are done and the next one as far as it is.
  void set_progress(int64_t id, std::span<const int32_t> tokens);
  std::string text_so_far() const;

 private:
  struct Part {
    std::string source;
    bool copied = false;  // not language: it is its own translation
    bool looped = false;
    std::vector<Hypothesis> hypotheses = {};
    std::vector<int32_t> so_far = {};
  };

  void split(const std::string& line);
  std::string text_of(const Part& part, std::span<const int32_t> tokens) const;
  TranslatedText join(size_t rank) const;

  const Translator& translator_;
  std::shared_ptr<const DecodeConfig> decode_;
  std::vector<int32_t> prefix_;
  bool prefix_is_complete_ = false;
  bool cut_ = false;
  std::vector<Part> parts_;
  std::vector<size_t> waiting_;          // parts to request, the next one last
  std::map<int64_t, size_t> requested_;  // request → part
};

}  // namespace calque

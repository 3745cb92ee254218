// Translator: text in, text out. It cleans a line, splits it where it is too long, searches, and joins the
// parts. Lines come out in the order in which they went in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calque/data/tokenizer.h"
#include "calque/decode/search.h"

namespace calque {

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
  const std::string& text() const { return best.front().text; }
};

// The next line; nothing at the end or, unless `wait`, when none is available yet.
using NextLine = std::function<std::optional<std::string>(bool wait)>;
using LineDone = std::function<void(int64_t line, const Translation& translation)>;  // in order, from 0
// The translation so far; returning false stops.
using LineProgress = std::function<bool(const std::string& text)>;

class Translator {
 public:
  // The decoder is used as it is; Decoder::pack() makes it fast.
  Translator(std::shared_ptr<const Decoder> decoder, Tokenizer tokenizer, const DecodeConfig& config);

  Translation translate(const std::string& line, const std::string& prefix = "",
                        const LineProgress& progress = {}) const;
  void translate_lines(const NextLine& next, const LineDone& done, const std::string& prefix = "") const;
  std::vector<Translation> translate_all(const std::vector<std::string>& lines,
                                         const std::function<void(int64_t count)>& advance = {}) const;

  // Puts these examples before every sentence (few-shot), for a model that was not trained to translate.
  void use_examples(const std::filesystem::path& file);

  // Shows the intermediate tensors of every pass to the hook; null ends it.
  void set_hook(const Hook* hook);

  DecodeConfig& config() { return config_; }
  const DecodeConfig& config() const { return config_; }
  const Decoder& decoder() const { return *decoder_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const SequenceFormat& format() const { return options_.format; }

 private:
  // A part of a line on its way through the search.
  struct Part {
    std::string source;
    bool copied = false;  // not language: it is its own translation
    bool looped = false;
    std::vector<Hypothesis> hypotheses = {};
  };

  void use_format(SequenceFormat format);
  Search& search() const;
  std::vector<Part> split(const std::string& line) const;
  SearchRequest request(int64_t id, const Part& part, const std::vector<int32_t>& prefix) const;
  TranslatedText join(const std::vector<Part>& parts, size_t rank) const;
  Translation finish(std::vector<Part> parts) const;

  std::shared_ptr<const Decoder> decoder_;
  Tokenizer tokenizer_;
  DecodeConfig config_;
  SearchOptions options_;
  mutable std::unique_ptr<Search> search_;  // made at the first translation; keeps its caches
};

}  // namespace calque

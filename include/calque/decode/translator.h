// Translator: text in, text out. It cleans a line, splits what is too long, searches, and joins; in whatever
// order sentences are finished, lines come out in the order in which they went in.
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
#include "calque/kernels/packing.h"

namespace calque {

// One way to translate a line.
struct TranslatedText {
  std::string text;
  double score = 0;            // sums over the line's parts
  double log_probability = 0;  //
  bool complete = true;        // false: a part was cut off at its greatest length
  std::vector<Hypothesis> parts;
};

struct Translation {
  std::vector<TranslatedText> best;  // the best first; one empty text for an empty line
  std::vector<std::string> sources;  // the parts that the line was translated in
  const std::string& text() const { return best.front().text; }
};

// The next line; nothing at the end or, unless `wait`, if there is none at this moment.
using NextLine = std::function<std::optional<std::string>(bool wait)>;
using LineDone = std::function<void(int64_t line, const Translation& translation)>;  // in order, from 0
// What there is of a line's translation so far; false stops.
using LineProgress = std::function<bool(const std::string& text)>;

class Translator {
 public:
  // On the CPU the weights are packed as `packing` says; elsewhere they are used as they are.
  Translator(std::shared_ptr<const Decoder> decoder, Tokenizer tokenizer, const DecodeConfig& config,
             Packing packing = Packing::float32);

  Translation translate(const std::string& line, const std::string& prefix = "",
                        const LineProgress& progress = {}) const;
  void translate_lines(const NextLine& next, const LineDone& done, const std::string& prefix = "") const;
  std::vector<Translation> translate_all(const std::vector<std::string>& lines,
                                         const std::function<void(int64_t count)>& advance = {}) const;

  // From here on puts these examples before every sentence, for a model that was never trained to translate.
  void show_examples(const std::filesystem::path& file);

  // Valid UTF-8 without control characters; what was neither is replaced.
  static std::string clean(std::string_view line);

  DecodeConfig& config() { return config_; }
  const DecodeConfig& config() const { return config_; }
  const Decoder& decoder() const { return *decoder_; }
  SearchModel model() const { return {*decoder_, packed_.get()}; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  Packing packing() const { return packing_; }
  const SequenceFormat& format() const { return options_.format; }

 private:
  void use_format(SequenceFormat format);
  SearchOptions search_options() const;
  std::vector<std::string> parts_of(const std::string& line) const;
  TranslatedText join(const std::vector<std::vector<Hypothesis>>& parts, size_t rank) const;

  std::shared_ptr<const Decoder> decoder_;
  std::shared_ptr<const PackedDecoder> packed_;  // null where the decoder is not on the CPU
  Tokenizer tokenizer_;
  DecodeConfig config_;
  SearchOptions options_;
  Packing packing_;
};

}  // namespace calque

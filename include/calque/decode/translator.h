// Translator: text in, text out: a model, its tokenizer and how to search. Lines come out in the order in
// which they went in.
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
#include "calque/decode/line_search.h"
#include "calque/decode/search.h"

namespace calque {

// The next line; nothing at the end or, unless `wait`, when none is available yet.
using NextLine = std::function<std::optional<std::string>(bool wait)>;
using LineDone = std::function<void(int64_t line, const Translation& translation)>;  // in order, from 0
// The translation so far; returning false stops.
using LineProgress = std::function<bool(const std::string& text)>;

// Line i of these is line first + i · stride of the whole text.
struct LineNumbers {
  int64_t first = 0, stride = 1;
};

class Translator {
 public:
  // The decoder is used as it is; Decoder::pack() makes it fast.
  Translator(std::shared_ptr<const Decoder> decoder, Tokenizer tokenizer, const DecodeConfig& config);

  Translation translate(const std::string& line, const std::string& prefix = "",
                        const LineProgress& progress = {}) const;
  // `numbers`: of the lines in the whole text, where these are only a part of it. Sampling depends on them.
  void translate_lines(const NextLine& next, const LineDone& done, const std::string& prefix = "",
                       const LineNumbers& numbers = {}) const;
  std::vector<Translation> translate_all(const std::vector<std::string>& lines,
                                         const std::function<void(int64_t count)>& advance = {}) const;

  // Puts these examples before every sentence (few-shot), for a model that was not trained to translate.
  void use_examples(const std::filesystem::path& file);

  // Shows the intermediate tensors of every pass to the hook; null ends it.
  void set_hook(const Hook* hook);

  // The search behind it, with the present configuration. It serves one thread at a time and keeps its
  // caches.
  Search& search() const;

  DecodeConfig& config() { return config_; }
  const DecodeConfig& config() const { return config_; }
  const Decoder& decoder() const { return *decoder_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const SequenceFormat& format() const { return options_.format; }
  // Tokens that no translation contains.
  const std::vector<int32_t>& forbidden() const { return options_.forbidden; }
  // Tokens that would continue the word before them.
  const std::shared_ptr<const std::vector<int32_t>>& continuations() const { return continuations_; }

 private:
  void use_format(SequenceFormat format);

  std::shared_ptr<const Decoder> decoder_;
  Tokenizer tokenizer_;
  DecodeConfig config_;
  SearchOptions options_;
  std::shared_ptr<const std::vector<int32_t>> continuations_;
  mutable std::unique_ptr<Search> search_;  // made at the first translation; keeps its caches
};

}  // namespace calque

// TranslateCall: what a request wants translated, and what has come of it so far.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api_json.h"
#include "calque/decode/glossary.h"
#include "calque/decode/markup.h"
#include "calque/serve/api.h"

namespace calque {

struct Api::TranslateCall {
  std::vector<std::string> texts;
  ServedModel model;
  std::shared_ptr<const DecodeConfig> decode;
  std::string prefix;
  TextOptions options;
  Glossary glossary;
  std::vector<Markup> markup;                                           // of each text; none: plain text
  std::function<void(size_t text, const std::string& so_far)> partial;  // where it is streamed
  std::function<void()> line_done;                                      // after each
  std::function<void(std::exception_ptr)> failed;                       // instead of an error's answer

  // By line, of all texts.
  std::vector<Translation> translations;
  std::map<size_t, std::string> unfinished;
  std::vector<size_t> first_line;  // of each text, and one more
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  void add_markup(const MarkupOptions& markup_options) {
    for (const std::string& text : texts) markup.emplace_back(text, markup_options);
  }
  size_t line_count() const;
  std::vector<std::string> lines();  // to translate, of all texts
  bool needs_passes() const { return options.attention || !glossary.empty() || !markup.empty(); }
  int64_t source_tokens() const, target_tokens() const;
  size_t text_of(size_t line) const;
  std::string text_so_far(size_t text) const;
  // `check` is called now and then while it is made, and may throw.
  TextAnswer answer_of(size_t text, const std::function<void()>& check) const;
  TranslateFacts facts() const;

 private:
  CandidateAnswer candidate(size_t text, size_t rank) const;
};

}  // namespace calque

// TranslateCall: what a request wants translated, and what has come of it so far.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
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
  std::shared_ptr<const Glossary> glossary;  // none: null
  std::vector<Glossary::Term> terms;         // or what it is made of, in the background
  std::vector<Markup> markup;                // of each text; none: plain text
  std::function<void(size_t text, const std::string& so_far)> partial;  // where it is streamed
  std::function<void()> line_done;                                      // after each
  std::function<void(std::exception_ptr)> failed;                       // instead of an error's answer

  // By line, of all texts.
  std::vector<Translation> translations;
  std::map<size_t, std::string> unfinished;
  std::vector<size_t> first_line;  // of each text, and one more
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  size_t attention_weights_left = 2'000'000;  // of the whole answer, which is some 80 MB with them

  void add_markup(const MarkupOptions& markup_options) {
    for (const std::string& text : texts) markup.emplace_back(text, markup_options);
  }
  size_t line_count() const;
  std::vector<std::string> lines();  // to translate, of all texts
  bool has_glossary() const { return glossary || !terms.empty(); }
  bool needs_passes() const { return options.attention || has_glossary() || !markup.empty(); }
  size_t answer_bytes() const;  // about, by the length of the source
  int64_t source_tokens() const, target_tokens() const;
  size_t text_of(size_t line) const;
  std::string text_so_far(size_t text) const;
  // Notes that a text has got longer, and passes what has changed on now and then.
  void pass_on(size_t text);
  TextAnswer answer_of(size_t text, const Check& check);
  TranslateFacts facts() const;

 private:
  CandidateAnswer candidate(size_t text, size_t rank, const Check& check) const;

  std::set<size_t> changed_texts_;  // since they were passed on
  std::chrono::steady_clock::time_point next_partial_ = {};
};

}  // namespace calque

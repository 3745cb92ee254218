// Glossary: terms whose translation is fixed. A translation without a term is searched for again, with a
// forced prefix: the translation up to the word that attended to the source term, then the wanted term. The
// rest follows from it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calque/decode/translator.h"

namespace calque {

class Glossary {
 public:
  struct Term {
    std::string source, target;
  };

  Glossary() = default;
  // Longer source terms win over shorter ones inside them.
  explicit Glossary(std::vector<Term> terms);

  bool empty() const { return terms_.empty(); }
  // A term in a source text: as whole words; upper and lower case are the same.
  struct Found {
    Term term;
    size_t first_word, last_word;  // of the source, from `first_word` to before `last_word`
  };
  std::vector<Found> terms_in(const std::string& source) const;  // in order
  // True if the text contains the term as whole words; upper and lower case are the same.
  static bool contains(const std::string& text, const std::string& term);

 private:
  std::vector<Term> terms_;
  std::vector<std::u32string> folded_;  // their sources, in lower case
};

// Translates lines, each beginning with its prefix; missing prefixes: none.
using TranslateLines = std::function<std::vector<Translation>(const std::vector<std::string>& lines,
                                                              const std::vector<std::string>& prefixes)>;

// Changes translations so that each has the terms of its source, unless the model's context is too short for
// them. Where a term had to be forced, only the best translation is kept. `prefix`: what the first
// translation begins with. `check` is called now and then, and may throw.
void force_terms(
    const Glossary& glossary, const Translator& translator, std::vector<Translation>& translations,
    const TranslateLines& translate, const std::string& prefix = "",
    const std::function<void()>& check = [] {});

}  // namespace calque

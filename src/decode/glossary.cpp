#include "calque/decode/glossary.h"

#include <algorithm>

#include "calque/base/text.h"
#include "calque/base/unicode.h"
#include "calque/decode/attention_map.h"

namespace calque {
namespace {

std::u32string folded(const std::string& text) { return code_points(lower_case(clean_text(text))); }

bool is_word_part(char32_t point) { return is_letter(point) || is_number(point); }

// The place of a term in a text as whole words, from `at` on; npos: none.
size_t find_term(const std::u32string& text, const std::u32string& term, size_t at) {
  for (;; ++at) {
    at = text.find(term, at);
    if (at == std::u32string::npos) return at;
    const size_t end = at + term.size();
    const bool begins = at == 0 || !is_word_part(text[at - 1]) || !is_word_part(term.front());
    const bool ends = end == text.size() || !is_word_part(text[end]) || !is_word_part(term.back());
    if (begins && ends) return at;
  }
}

// A source part under translation: what is fixed of its translation so far.
struct Forced {
  size_t line = 0, part = 0;
  std::string source;
  std::vector<Glossary::Found> terms;  // that have not been forced
  std::string prefix;                  // what has
  Hypothesis hypothesis;
};

std::string text_of(const Translator& translator, const Hypothesis& hypothesis) {
  return clean_text(translator.tokenizer().decode(hypothesis.tokens));
}

// The words before the one that attended most to source words `begin` … `end` - 1; the first `kept` stay.
size_t words_before(const Translator& translator, const Forced& forced, size_t words, size_t kept,
                    size_t begin, size_t end) {
  const Tokenizer& tokenizer = translator.tokenizer();
  const AttentionMap map = map_attention(translator.decoder(), tokenizer, translator.format(),
                                         tokenizer.encode(forced.source), forced.hypothesis.tokens);
  const auto weights = map.alignment();
  const size_t mapped = map.target.size() - 1;  // without the end
  size_t best = std::min(kept, words);
  double highest = -1;  // mutate: any number below 0
  for (size_t word = best; word < words; ++word) {
    const size_t row = word * mapped / words;  // a tokenizer may see other words than a person does
    double weight = 0;
    for (size_t s = begin; s < std::min(end, map.source.size()); ++s) weight += weights[row][s];
    if (weight > highest) {
      highest = weight;
      best = word;
    }
  }
  return best;
}

// The prefix that brings in a missing term; nothing where it does not fit into the model's context.
std::optional<std::string> prefix_with(const Translator& translator, const Forced& forced,
                                       const Glossary::Found& found) {
  std::vector<std::string> words;
  for (const std::u32string& word : split_words(code_points(text_of(translator, forced.hypothesis))))
    words.push_back(to_utf8(word));
  const size_t kept = split_words(code_points(forced.prefix)).size();
  const size_t best = words_before(translator, forced, words.size(), kept, found.first_word, found.last_word);
  std::string target = clean_text(found.term.target);
  char& initial = target.front();
  if (best == 0 && initial >= 'a' && initial <= 'z' && !words.empty() && words[0][0] >= 'A' &&
      words[0][0] <= 'Z')
    initial = static_cast<char>(initial - 'a' + 'A');  // it begins the sentence
  words.resize(best);
  words.push_back(target);
  const std::string prefix = join(words, " ") + " ";
  const auto tokens = [&](const std::string& text) {
    return static_cast<int64_t>(translator.tokenizer().encode(text).size());
  };
  const int64_t rows = translator.format().rows(tokens(forced.source), tokens(clean_text(prefix)));
  if (rows + 2 >= translator.decoder().config().context_length) return std::nullopt;
  return prefix;
}

}  // namespace

Glossary::Glossary(std::vector<Term> terms) : terms_(std::move(terms)) {
  std::erase_if(terms_, [](const Term& term) {
    return clean_text(term.source).empty() || clean_text(term.target).empty();
  });
  std::stable_sort(terms_.begin(), terms_.end(),
                   [](const Term& a, const Term& b) { return a.source.size() > b.source.size(); });
  for (const Term& term : terms_) folded_.push_back(folded(term.source));
}

std::vector<Glossary::Found> Glossary::terms_in(const std::string& source) const {
  std::u32string text = folded(source);
  const std::u32string whole = text;
  std::vector<std::pair<size_t, const Term*>> places;
  for (size_t i = 0; i < terms_.size(); ++i) {
    const std::u32string& wanted = folded_[i];
    const size_t at = find_term(text, wanted, 0);
    if (at == std::u32string::npos) continue;
    places.emplace_back(at, &terms_[i]);
    for (size_t again = at; again != std::u32string::npos; again = find_term(text, wanted, again))
      text.replace(again, wanted.size(), wanted.size(), U'\0');  // no shorter term is found inside it
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Found> found;
  for (const auto& [at, term] : places) {
    const bool inside_a_word = at > 0 && !is_space(whole[at - 1]);
    const size_t first = split_words(whole.substr(0, at)).size() - (inside_a_word ? 1 : 0);
    found.push_back({*term, first, first + split_words(code_points(term->source)).size()});
  }
  return found;
}

bool Glossary::contains(const std::string& text, const std::string& term) {
  return find_term(folded(text), folded(term), 0) != std::u32string::npos;
}

namespace {

// The next term that the translation lacks. Each is taken once, so that there are at most as many rounds as
// terms.
std::optional<Glossary::Found> take_missing(const Translator& translator, Forced& forced) {
  const std::string text = text_of(translator, forced.hypothesis);
  const auto found = std::find_if(forced.terms.begin(), forced.terms.end(), [&](const Glossary::Found& one) {
    return !Glossary::contains(text, one.term.target);
  });
  if (found == forced.terms.end()) return std::nullopt;
  Glossary::Found term = *found;
  forced.terms.erase(found);
  return term;
}

void replace_part(const Translator& translator, Translation& translation, Forced& forced) {
  translation.best.resize(1);
  TranslatedText& best = translation.best.front();
  best.parts[forced.part] = std::move(forced.hypothesis);
  best.text.clear();
  best.score = best.log_probability = 0;
  best.complete = true;
  for (size_t i = 0; i < best.parts.size(); ++i) {
    const Hypothesis& part = best.parts[i];
    const std::string text = part.is_copied() ? translation.sources[i] : text_of(translator, part);
    best.text += (best.text.empty() || text.empty() ? "" : " ") + text;
    best.score += part.score;
    best.log_probability += part.log_probability;
    best.complete = best.complete && part.ended;
  }
}

}  // namespace

void force_terms(const Glossary& glossary, const Translator& translator,
                 std::vector<Translation>& translations, const TranslateLines& translate,
                 const std::string& prefix, const std::function<void()>& check) {
  std::vector<Forced> left;
  for (size_t line = 0; line < translations.size(); ++line) {
    const Translation& one = translations[line];
    for (size_t part = 0; part < one.sources.size(); ++part) {
      check();
      const Hypothesis& hypothesis = one.best.front().parts[part];
      if (hypothesis.is_copied()) continue;
      auto terms = glossary.terms_in(one.sources[part]);
      if (terms.empty()) continue;
      left.push_back(
          {line, part, one.sources[part], std::move(terms), line + part == 0 ? prefix : "", hypothesis});
    }
  }
  for (bool changed = false; !left.empty(); changed = true) {
    std::vector<std::string> sources, prefixes;
    std::vector<Forced> next;
    for (Forced& one : left) {
      check();
      std::optional<std::string> forced;
      while (!forced) {  // a term that does not fit is left out
        const auto term = take_missing(translator, one);
        if (!term) break;
        forced = prefix_with(translator, one, *term);
      }
      if (forced) {
        one.prefix = *forced;
        sources.push_back(one.source);
        prefixes.push_back(one.prefix);
        next.push_back(std::move(one));
      } else if (changed) {
        replace_part(translator, translations[one.line], one);
      }
    }
    if (next.empty()) break;
    const auto again = translate(sources, prefixes);
    for (size_t i = 0; i < next.size(); ++i) next[i].hypothesis = again[i].best.front().parts.front();
    left = std::move(next);
  }
}

}  // namespace calque

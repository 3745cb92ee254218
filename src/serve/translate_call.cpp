#include "translate_call.h"

#include <algorithm>
#include <utility>

#include "calque/base/unicode.h"
#include "calque/decode/attention_map.h"

namespace calque {

namespace {

// Texts so far are passed on this often at most. Each time costs as much as they are long: they may take a
// twentieth of the time.
constexpr auto partial_interval = std::chrono::milliseconds(25);
constexpr int partial_share = 20;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  lines.push_back(text.substr(begin));
  return lines;
}

// The words of a translation with the source words that they attended to; of all parts, one after another.
AlignedText align(const Translator& translator, const Translation& translation,
                  const TranslatedText& chosen) {
  const Tokenizer& tokenizer = translator.tokenizer();
  AlignedText aligned;
  for (size_t i = 0; i < translation.sources.size(); ++i) {
    const std::string& source = translation.sources[i];
    const Hypothesis& part = chosen.parts[i];
    const size_t own = split_words(code_points(source)).size();
    if (part.is_copied()) {
      aligned.words.push_back(source);
      aligned.sources.push_back(aligned.source_words);
    } else if (!part.tokens.empty()) {
      const AttentionMap map = map_attention(translator.decoder(), tokenizer, translator.format(),
                                             tokenizer.encode(source), part.tokens);
      const auto weights = map.alignment();
      for (size_t word = 0; word + 1 < map.target.size(); ++word) {  // without the end
        const auto& row = weights[word];
        const auto best = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
        aligned.words.push_back(map.target[word]);
        // The tokenizer may see other words than a person does: spread them evenly.
        aligned.sources.push_back(aligned.source_words + best * own / map.source.size());
      }
    }
    aligned.source_words += own;
  }
  return aligned;
}

}  // namespace

size_t Api::TranslateCall::line_count() const {
  size_t count = 0;
  for (size_t i = 0; i < texts.size(); ++i)
    count += markup.empty() ? 1 + static_cast<size_t>(std::count(texts[i].begin(), texts[i].end(), '\n'))
                            : markup[i].segments().size();
  return count;
}

std::vector<std::string> Api::TranslateCall::lines() {
  std::vector<std::string> all;
  for (size_t i = 0; i < texts.size(); ++i) {
    first_line.push_back(all.size());
    const auto own = markup.empty() ? lines_of(texts[i]) : markup[i].segments();
    all.insert(all.end(), own.begin(), own.end());
  }
  first_line.push_back(all.size());
  translations.resize(all.size());
  return all;
}

int64_t Api::TranslateCall::source_tokens() const {
  size_t count = 0;
  for (const Translation& one : translations) {
    for (const std::string& source : one.sources)
      count += model.translator->tokenizer().encode(source).size();
  }
  return static_cast<int64_t>(count);
}

int64_t Api::TranslateCall::target_tokens() const {
  size_t count = 0;
  for (const Translation& one : translations) {
    for (const Hypothesis& part : one.best.front().parts) count += part.tokens.size();
  }
  return static_cast<int64_t>(count);
}

size_t Api::TranslateCall::text_of(size_t line) const {
  return static_cast<size_t>(std::upper_bound(first_line.begin(), first_line.end(), line) -
                             first_line.begin()) -
         1;
}

std::string Api::TranslateCall::text_so_far(size_t text) const {
  std::string all;
  for (size_t line = first_line[text]; line < first_line[text + 1]; ++line) {
    const auto part = unfinished.find(line);
    const bool done = !translations[line].best.empty();
    if (!done && part == unfinished.end()) break;
    all += (line > first_line[text] ? "\n" : "") + (done ? translations[line].text() : part->second);
    if (!done) break;
  }
  return all;
}

size_t Api::TranslateCall::answer_bytes() const {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size() + 1;
  return bytes * static_cast<size_t>(decode->nbest);
}

void Api::TranslateCall::pass_on(size_t text) {
  changed_texts_.insert(text);
  const auto before = std::chrono::steady_clock::now();
  if (before < next_partial_) return;
  for (const size_t one : std::exchange(changed_texts_, {})) partial(one, text_so_far(one));
  const auto after = std::chrono::steady_clock::now();
  next_partial_ = after + std::max<std::chrono::steady_clock::duration>(partial_interval,
                                                                        partial_share * (after - before));
}

// Joins the rank-th best translation of each line, or its last where it has fewer.
CandidateAnswer Api::TranslateCall::candidate(size_t text, size_t rank, const Check& check) const {
  CandidateAnswer joined;
  std::vector<AlignedText> aligned;  // where there is markup
  if (options.words) joined.parts.emplace();
  const size_t first = first_line[text];
  for (size_t line = first; line < first_line[text + 1]; ++line) {
    check();
    const Translation& translation = translations[line];
    const TranslatedText& chosen = translation.best[std::min(rank, translation.best.size() - 1)];
    joined.score += chosen.score;
    joined.log_probability += chosen.log_probability;
    joined.complete = joined.complete && chosen.complete;
    for (size_t i = 0; joined.parts && i < chosen.parts.size(); ++i)
      joined.parts->push_back(part_text(*model.translator, translation.sources[i], chosen.parts[i]));
    if (markup.empty()) {
      joined.text += (line > first ? "\n" : "") + chosen.text;
    } else {
      aligned.push_back(markup[text].has_tags(line - first) ? align(*model.translator, translation, chosen)
                                                            : AlignedText{{chosen.text}});
    }
  }
  if (!markup.empty()) joined.text = markup[text].join(aligned);
  return joined;
}

TextAnswer Api::TranslateCall::answer_of(size_t text, const Check& check) {
  TextAnswer answer;
  size_t ranks = 1;
  for (size_t line = first_line[text]; line < first_line[text + 1]; ++line) {
    add_segments(answer.segments, static_cast<int64_t>(line - first_line[text]), *model.translator,
                 translations[line], options, attention_weights_left, check);
    ranks = std::max(ranks, translations[line].best.size());
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    CandidateAnswer one = candidate(text, rank, check);
    const bool repeated = std::any_of(answer.nbest.begin(), answer.nbest.end(),
                                      [&](const CandidateAnswer& other) { return other.text == one.text; });
    if (!repeated) answer.nbest.push_back(std::move(one));
  }
  answer.text = answer.nbest.front().text;
  return answer;
}

TranslateFacts Api::TranslateCall::facts() const {
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return {model.name, model.precision, time.count()};
}

}  // namespace calque

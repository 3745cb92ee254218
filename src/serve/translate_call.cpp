#include "translate_call.h"

#include <algorithm>

#include "calque/base/unicode.h"
#include "calque/decode/attention_map.h"

namespace calque {

using nlohmann::json;

namespace {

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

json Api::TranslateCall::to_json(size_t text) const {
  json segments = json::array();
  std::string joined;
  const size_t first = first_line[text], last = first_line[text + 1];
  for (size_t line = first; line < last; ++line) {
    joined += (line > first ? "\n" : "") + translations[line].text();
    add_segments(segments, static_cast<int64_t>(line - first), *model.translator, translations[line],
                 options);
  }
  if (!markup.empty()) {
    std::vector<AlignedText> aligned;
    for (size_t line = first; line < last; ++line) {
      const bool has_tags = markup[text].has_tags(line - first);
      aligned.push_back(has_tags
                            ? align(*model.translator, translations[line], translations[line].best.front())
                            : AlignedText{{translations[line].text()}});
    }
    joined = markup[text].join(aligned);
  }
  json answer = {{"text", joined}, {"segments", std::move(segments)}};
  if (last - first == 1) {
    const auto with_tags = [&](const TranslatedText& one) {
      const bool has_tags = !markup.empty() && markup[text].has_tags(0);
      return markup.empty() ? one.text
                            : markup[text].join({has_tags ? align(*model.translator, translations[first], one)
                                                          : AlignedText{{one.text}}});
    };
    for (const TranslatedText& one : translations[first].best)
      answer["nbest"].push_back({{"text", with_tags(one)},
                                 {"score", one.score},
                                 {"log_probability", one.log_probability},
                                 {"complete", one.complete}});
  }
  return answer;
}

}  // namespace calque

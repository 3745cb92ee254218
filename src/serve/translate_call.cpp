#include "translate_call.h"

#include <algorithm>

namespace calque {

using nlohmann::json;

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
  json answer = {{"text", joined}, {"segments", std::move(segments)}};
  if (last - first == 1) {
    for (const TranslatedText& one : translations[first].best)
      answer["nbest"].push_back({{"text", one.text},
                                 {"score", one.score},
                                 {"log_probability", one.log_probability},
                                 {"complete", one.complete}});
  }
  return answer;
}

}  // namespace calque

#include "calque/runs/shared_translation.h"

#include <fmt/format.h>

namespace calque {

namespace {

constexpr size_t lines_per_rank = 256;  // in a block: enough to keep a rank's batches full

}  // namespace

SharedTranslation::SharedTranslation(const Translator& translator, ProcessGroup& group, Render render,
                                     std::string prefix)
    : translator_(translator), group_(group), render_(std::move(render)), prefix_(std::move(prefix)) {}

SharedTranslation::~SharedTranslation() {
  if (group_.is_alone() || !group_.is_first()) return;
  try {
    group_.broadcast(ProcessGroup::Texts());
  } catch (const std::exception&) {  // a rank is lost: the operation before has said so
  }
}

TranslatedLine SharedTranslation::summarise(int64_t line, const Translation& translation) const {
  const TranslatedText& best = translation.best.front();
  TranslatedLine result{render_(line, translation), best.complete,   translation.looped,
                        translation.copied,         translation.cut, 0};
  for (const Hypothesis& part : best.parts)
    result.tokens += static_cast<int64_t>(part.token_log_probabilities.size());
  return result;
}

// Every Nth line, so that all ranks have as many long ones.
std::vector<TranslatedLine> SharedTranslation::translate_share(const std::vector<std::string>& lines,
                                                               int64_t first_line) const {
  const auto ranks = static_cast<size_t>(group_.size());
  auto at = static_cast<size_t>(group_.rank());
  std::vector<TranslatedLine> translated;
  translator_.translate_lines(
      [&](bool) -> std::optional<std::string> {
        if (at >= lines.size()) return std::nullopt;
        const size_t line = at;
        at += ranks;
        return lines[line];
      },
      [&](int64_t index, const Translation& translation) {
        translated.push_back(summarise(first_line + index * group_.size() + group_.rank(), translation));
      },
      prefix_);
  return translated;
}

namespace {

ProcessGroup::Texts pack(const std::vector<TranslatedLine>& lines) {
  ProcessGroup::Texts texts;
  for (const TranslatedLine& one : lines) {
    texts.push_back(one.text);
    texts.push_back(
        fmt::format("{:d}{:d}{:d}{:d}{}", one.complete, one.looped, one.copied, one.cut, one.tokens));
  }
  return texts;
}

TranslatedLine unpack(const ProcessGroup::Texts& texts, size_t line) {
  const std::string& facts = texts.at(2 * line + 1);
  return {texts.at(2 * line), facts[0] == '1', facts[1] == '1',
          facts[2] == '1',    facts[3] == '1', std::stoll(facts.substr(4))};
}

}  // namespace

void SharedTranslation::run(const NextLine& next, const Done& done) {
  if (group_.is_alone()) {
    translator_.translate_lines(
        next, [&](int64_t line, const Translation& one) { done(line, summarise(line, one)); }, prefix_);
    return;
  }
  for (int64_t first_line = 0;;) {
    ProcessGroup::Texts lines;
    while (lines.size() < lines_per_rank * static_cast<size_t>(group_.size())) {
      auto line = next(true);
      if (!line) break;
      lines.push_back(std::move(*line));
    }
    if (lines.empty()) return;
    group_.broadcast(lines);
    const auto by_rank = group_.gather(pack(translate_share(lines, first_line)));
    for (size_t i = 0; i < lines.size(); ++i)
      done(first_line++, unpack(by_rank[i % by_rank.size()], i / by_rank.size()));
  }
}

void SharedTranslation::work() {
  for (int64_t first_line = 0;;) {
    const auto lines = group_.broadcast(ProcessGroup::Texts());
    if (lines.empty()) return;
    group_.gather(pack(translate_share(lines, first_line)));
    first_line += static_cast<int64_t>(lines.size());
  }
}

}  // namespace calque

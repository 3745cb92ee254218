#include "calque/decode/line_search.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/unicode.h"
#include "calque/decode/segments.h"
#include "calque/decode/translator.h"

namespace calque {
namespace {

constexpr int64_t retry_no_repeat_ngram = 3;
constexpr size_t longest_period = 8;
constexpr size_t repetitions_of_a_loop = 5;

// How often an n-gram is repeated in a row, at most: 1 in a text without repetition.
size_t repetitions(const std::vector<int32_t>& tokens) {
  size_t most = 1;
  for (size_t period = 1; period <= longest_period; ++period) {
    size_t same = 0;  // tokens in a row that equal the one a period before
    for (size_t i = period; i < tokens.size(); ++i) {
      same = tokens[i] == tokens[i - period] ? same + 1 : 0;
      most = std::max(most, 1 + same / period);
    }
  }
  return most;
}

// True if the search repeats itself where its source does not. What was cut off at the length limit may not
// repeat itself at all.
bool is_loop(const Hypothesis& hypothesis, const Tokenizer& tokenizer, const std::string& source) {
  const size_t found = repetitions(hypothesis.tokens);
  return found >= repetitions_of_a_loop &&
         (!hypothesis.ended || found > 2 * repetitions(tokenizer.encode(source)));
}

void append_text(std::string& text, const std::string& more) {
  if (!more.empty()) text += (text.empty() ? "" : " ") + more;
}

}  // namespace

LineSearch::LineSearch(const Translator& translator, const std::string& line, const std::string& prefix,
                       std::shared_ptr<const DecodeConfig> decode)
    : translator_(translator), decode_(std::move(decode)) {
  if (!prefix.empty()) prefix_ = translator.tokenizer().encode(clean_text(prefix));
  prefix_is_complete_ = prefix.ends_with(' ');
  split(line);
  for (size_t index = parts_.size(); index-- > 0;) {
    if (!parts_[index].copied) waiting_.push_back(index);
  }
}

// A word that does not fit by itself is no word of a language (a key, a URL, a row of letters): it is copied.
void LineSearch::split(const std::string& line) {
  const std::string cleaned = clean_text(line);
  if (cleaned.empty()) return;
  const int64_t longest = longest_source(translator_.decoder().config(), translator_.format());
  const auto has_at_most = [&](std::string_view part, int64_t most) {
    // Far too long to fit: no need to encode it.
    return static_cast<int64_t>(part.size()) <= 64 * most &&
           static_cast<int64_t>(translator_.tokenizer().encode(part).size()) <= most;
  };
  const auto fits = [&](std::string_view part) {
    return has_at_most(part, std::min(decode_->split_tokens, longest));
  };
  if (!decode_->split_sentences && fits(cleaned)) {
    parts_.push_back({cleaned});
    return;
  }
  for (std::string& text : split_text(cleaned, fits)) {
    const bool copied = !has_at_most(text, longest);
    parts_.push_back({std::move(text), copied});
  }
  const bool mid_sentence = std::any_of(parts_.begin(), parts_.end() - 1, [](const Part& part) {
    return !part.copied && std::string_view(".!?:;)\"").find(part.source.back()) == std::string_view::npos &&
           !part.source.ends_with("…") && !part.source.ends_with("»");
  });
  const auto all = static_cast<int64_t>(translator_.tokenizer().encode(cleaned).size());
  cut_ = mid_sentence && all > longest;
}

SearchRequest LineSearch::next(int64_t id) {
  const size_t index = waiting_.back();
  waiting_.pop_back();
  requested_[id] = index;
  const Part& part = parts_[index];
  SearchRequest request{id, translator_.tokenizer().encode(part.source)};
  if (index == 0 && !prefix_.empty()) {
    request.prefix = prefix_;
    const int64_t context = translator_.decoder().config().context_length;
    const int64_t rows = translator_.format().rows(static_cast<int64_t>(request.source.size()),
                                                   static_cast<int64_t>(prefix_.size()));
    if (rows >= context)
      throw UserError(
          fmt::format("a prefix of {} tokens is too long: {} tokens of source and prefix, a context of {}",
                      prefix_.size(), rows, context));
    if (prefix_is_complete_) request.not_after_prefix = translator_.continuations();
  }
  request.random_stream = static_cast<int64_t>(index);
  request.decode = decode_;
  if (part.looped) {
    auto other = std::make_shared<DecodeConfig>(*decode_);
    other->no_repeat_ngram = retry_no_repeat_ngram;
    request.decode = other;
  }
  return request;
}

void LineSearch::accept(int64_t id, std::vector<Hypothesis> hypotheses) {
  const size_t index = requested_.at(id);
  requested_.erase(id);
  Part& part = parts_[index];
  if (!part.looped && is_loop(hypotheses.front(), translator_.tokenizer(), part.source)) {
    part.looped = true;
    waiting_.push_back(index);
    return;
  }
  part.hypotheses = std::move(hypotheses);
}

std::string LineSearch::text_of(const Part& part, std::span<const int32_t> tokens) const {
  if (part.copied) return part.source;
  std::string text = translator_.tokenizer().decode(tokens);
  // With examples the line ends the translation, also where a token contains more than the line feed.
  if (!translator_.config().shots.empty()) text = text.substr(0, text.find('\n'));
  return clean_text(text);  // byte pieces can form invalid UTF-8 or a line feed
}

// The rank-th best of each part, or its last where it has fewer.
TranslatedText LineSearch::join(size_t rank) const {
  TranslatedText joined;
  for (const Part& part : parts_) {
    if (!part.copied && part.hypotheses.empty()) continue;
    Hypothesis hypothesis;
    if (!part.copied) hypothesis = part.hypotheses[std::min(rank, part.hypotheses.size() - 1)];
    append_text(joined.text, text_of(part, hypothesis.tokens));
    joined.score += hypothesis.score;
    joined.log_probability += hypothesis.log_probability;
    joined.complete = joined.complete && hypothesis.ended;
    joined.parts.push_back(std::move(hypothesis));
  }
  return joined;
}

Translation LineSearch::finish() const {
  Translation translation;
  size_t ranks = 1;
  for (const Part& part : parts_) {
    ranks = std::max(ranks, part.hypotheses.size());
    translation.sources.push_back(part.source);
    translation.looped = translation.looped || part.looped;
    translation.copied = translation.copied || part.copied;
  }
  translation.cut = cut_;
  for (size_t rank = 0; rank < ranks; ++rank) {
    TranslatedText text = join(rank);
    const bool repeated = std::any_of(translation.best.begin(), translation.best.end(),
                                      [&](const TranslatedText& one) { return one.text == text.text; });
    if (!repeated) translation.best.push_back(std::move(text));  // tokens may differ where the text does not
  }
  return translation;
}

void LineSearch::set_progress(int64_t id, std::span<const int32_t> tokens) {
  parts_[requested_.at(id)].so_far.assign(tokens.begin(), tokens.end());
}

std::string LineSearch::text_so_far() const {
  std::string text;
  for (const Part& part : parts_) {
    const bool done = part.copied || !part.hypotheses.empty();
    append_text(text, text_of(part, done && !part.copied ? part.hypotheses.front().tokens : part.so_far));
    if (!done) break;
  }
  return text;
}

}  // namespace calque

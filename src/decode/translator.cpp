#include "calque/decode/translator.h"

#include <torch/types.h>

#include <algorithm>
#include <deque>
#include <map>

#include "calque/base/error.h"
#include "calque/base/text.h"
#include "calque/base/unicode.h"
#include "calque/data/corpus.h"
#include "calque/decode/segments.h"
#include "calque/model/decoder.h"

namespace calque {
namespace {

constexpr const char* example_prompt = "French:\n{source}\nEnglish:\n{target}";

constexpr int64_t retry_no_repeat_ngram = 3;
constexpr size_t longest_period = 8;
constexpr size_t repetitions_of_a_loop = 5;

// True if the tokens end in one n-gram repeated many times.
bool is_loop(const std::vector<int32_t>& tokens) {
  for (size_t period = 1; period <= longest_period; ++period) {
    const size_t length = period * repetitions_of_a_loop;
    if (tokens.size() < length) break;
    const auto begin = tokens.end() - static_cast<int64_t>(length);
    if (std::equal(begin + static_cast<int64_t>(period), tokens.end(), begin)) return true;
  }
  return false;
}

}  // namespace

Translator::Translator(std::shared_ptr<const Decoder> decoder, Tokenizer tokenizer,
                       const DecodeConfig& config)
    : decoder_(std::move(decoder)), tokenizer_(std::move(tokenizer)), config_(config) {
  check_decode(config_);
  if (tokenizer_.size() > decoder_->config().vocabulary) {
    throw UserError(fmt::format("the tokenizer has {} pieces, but the model's vocabulary is {}",
                                tokenizer_.size(), decoder_->config().vocabulary),
                    "the tokenizer belongs to another model");
  }
  use_format(pair_format(tokenizer_, decoder_->config().prompt));
  if (!config_.shots.empty()) use_examples(config_.shots);
}

void Translator::use_format(SequenceFormat format) {
  options_.format = std::move(format);
  options_.forbidden.clear();
  for (int32_t id = 0; id < tokenizer_.size(); ++id) {
    if (id != options_.format.end && (tokenizer_.is_control(id) || id == tokenizer_.unknown_id()))
      options_.forbidden.push_back(id);
  }
  for (auto id = static_cast<int64_t>(tokenizer_.size()); id < decoder_->config().vocabulary; ++id)
    options_.forbidden.push_back(static_cast<int32_t>(id));  // rows that no piece belongs to
  search_.reset();
}

void Translator::set_hook(const Hook* hook) {
  options_.hook = hook;
  search_.reset();
}

Search& Translator::search() const {
  if (!search_) search_ = std::make_unique<Search>(*decoder_, options_);
  search_->config() = config_;
  return *search_;
}

void Translator::use_examples(const std::filesystem::path& file) {
  CorpusPart part;
  part.pairs = file;
  PairReader reader(part);
  std::vector<std::pair<std::string, std::string>> examples;
  for (SentencePair pair; reader.next(pair);)
    examples.emplace_back(clean_text(pair.source), clean_text(pair.target));
  if (examples.empty()) throw UserError(fmt::format("{}: no examples in this file", file.string()));
  const std::string& prompt = decoder_->config().prompt;
  SequenceFormat format = example_format(tokenizer_, prompt.empty() ? example_prompt : prompt, examples);
  const int64_t rows = format.rows(0, 0), most = decoder_->config().context_length;
  if (rows > most / 2)
    throw UserError(fmt::format("{}: the examples take {} of the model's {} tokens of context", file.string(),
                                rows, most),
                    "leave at least half of the context for the sentence and its translation");
  use_format(std::move(format));
  config_.shots = file;
}

// A word that does not fit by itself is no word of a language (a key, a URL, a row of letters): it is copied.
std::vector<Translator::Part> Translator::split(const std::string& line) const {
  const std::string cleaned = clean_text(line);
  if (cleaned.empty()) return {};
  const int64_t most = std::min(config_.split_tokens, longest_source(decoder_->config(), options_.format));
  const auto fits = [&](std::string_view part) {
    // Far too long to fit: no need to encode it.
    return static_cast<int64_t>(part.size()) <= 64 * most &&
           static_cast<int64_t>(tokenizer_.encode(part).size()) <= most;
  };
  if (fits(cleaned)) return {{cleaned}};
  std::vector<Part> parts;
  for (std::string& text : split_text(cleaned, fits)) {
    const bool copied = !fits(text);
    parts.push_back({std::move(text), copied});
  }
  return parts;
}

SearchRequest Translator::request(int64_t id, const Part& part, const std::vector<int32_t>& prefix) const {
  SearchRequest request{id, tokenizer_.encode(part.source), prefix};
  if (part.looped) request.no_repeat_ngram = retry_no_repeat_ngram;
  return request;
}

// The rank-th best of each part, or its last where it has fewer.
TranslatedText Translator::join(const std::vector<Part>& parts, size_t rank) const {
  TranslatedText joined;
  for (const Part& part : parts) {
    Hypothesis hypothesis;
    std::string text = part.source;
    if (!part.copied) {
      if (part.hypotheses.empty()) continue;
      hypothesis = part.hypotheses[std::min(rank, part.hypotheses.size() - 1)];
      text = tokenizer_.decode(hypothesis.tokens);
      // With examples the line ends the translation, also where a token contains more than the line feed.
      if (!config_.shots.empty()) text = text.substr(0, text.find('\n'));
      text = clean_text(text);  // byte pieces can form invalid UTF-8 or a line feed
    }
    if (!text.empty()) joined.text += (joined.text.empty() ? "" : " ") + text;
    joined.score += hypothesis.score;
    joined.log_probability += hypothesis.log_probability;
    joined.complete = joined.complete && hypothesis.ended;
    joined.parts.push_back(std::move(hypothesis));
  }
  return joined;
}

Translation Translator::finish(std::vector<Part> parts) const {
  Translation translation;
  size_t ranks = 1;
  for (const Part& part : parts) {
    ranks = std::max(ranks, part.hypotheses.size());
    translation.sources.push_back(part.source);
    translation.looped = translation.looped || part.looped;
    translation.copied = translation.copied || part.copied;
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    TranslatedText text = join(parts, rank);
    const bool repeated = std::any_of(translation.best.begin(), translation.best.end(),
                                      [&](const TranslatedText& one) { return one.text == text.text; });
    if (!repeated) translation.best.push_back(std::move(text));  // tokens may differ where the text does not
  }
  return translation;
}

void Translator::translate_lines(const NextLine& next, const LineDone& done,
                                 const std::string& prefix) const {
  struct Line {
    std::vector<Part> parts;
    size_t missing = 0;
  };
  std::map<int64_t, Line> lines;                         // read, not yet delivered
  std::map<int64_t, std::pair<int64_t, size_t>> places;  // request → line, part
  std::deque<SearchRequest> waiting;
  int64_t read = 0, delivered = 0, requests = 0;
  const std::vector<int32_t> prefix_tokens =
      prefix.empty() ? std::vector<int32_t>{} : tokenizer_.encode(clean_text(prefix));

  const auto deliver = [&] {
    for (auto found = lines.find(delivered); found != lines.end() && found->second.missing == 0;
         found = lines.find(delivered)) {
      const Translation translation = finish(std::move(found->second.parts));
      lines.erase(found);
      done(delivered++, translation);
    }
  };
  const auto enqueue = [&](int64_t line, size_t index) {
    const Part& part = lines.at(line).parts[index];
    places[requests] = {line, index};
    waiting.push_back(request(requests++, part, index == 0 ? prefix_tokens : std::vector<int32_t>{}));
  };
  const NextRequest next_request = [&](bool wait) -> std::optional<SearchRequest> {
    while (waiting.empty()) {
      const auto text = next(wait);
      if (!text) return std::nullopt;
      Line& line = lines[read];
      line.parts = split(*text);
      for (size_t index = 0; index < line.parts.size(); ++index) {
        if (line.parts[index].copied) continue;
        ++line.missing;
        enqueue(read, index);
      }
      ++read;
      deliver();  // the line may need no search, and be the next to come out
    }
    SearchRequest first = std::move(waiting.front());
    waiting.pop_front();
    return first;
  };
  const RequestDone request_done = [&](int64_t id, std::vector<Hypothesis> hypotheses) {
    const auto [line, index] = places.at(id);
    places.erase(id);
    Part& part = lines.at(line).parts[index];
    if (!part.looped && is_loop(hypotheses.front().tokens)) {
      part.looped = true;
      enqueue(line, index);
      return;
    }
    part.hypotheses = std::move(hypotheses);
    --lines.at(line).missing;
    deliver();
  };
  search().run(next_request, request_done);
}

Translation Translator::translate(const std::string& line, const std::string& prefix,
                                  const LineProgress& progress) const {
  std::vector<Part> parts = split(line);
  const std::vector<int32_t> prefix_tokens =
      prefix.empty() ? std::vector<int32_t>{} : tokenizer_.encode(clean_text(prefix));
  bool stopped = false;
  // One part after the other, so that the shown text only grows.
  for (size_t index = 0; index < parts.size() && !stopped; ++index) {
    Part& part = parts[index];
    if (part.copied) continue;
    const RequestProgress step = [&](int64_t, std::span<const int32_t> tokens) {
      if (!progress) return true;
      const std::string before = join({parts.begin(), parts.begin() + static_cast<int64_t>(index)}, 0).text;
      stopped = !progress(before + (before.empty() ? "" : " ") + clean_text(tokenizer_.decode(tokens)));
      return !stopped;
    };
    for (int attempt = 0; attempt < 2 && !stopped; ++attempt) {
      std::optional<SearchRequest> only =
          request(0, part, index == 0 ? prefix_tokens : std::vector<int32_t>{});
      search().run([&](bool) { return std::exchange(only, std::nullopt); },
                   [&](int64_t, std::vector<Hypothesis> found) { part.hypotheses = std::move(found); }, step);
      if (part.looped || part.hypotheses.empty() || !is_loop(part.hypotheses.front().tokens)) break;
      part.looped = true;
    }
  }
  return finish(std::move(parts));
}

std::vector<Translation> Translator::translate_all(const std::vector<std::string>& lines,
                                                   const std::function<void(int64_t)>& advance) const {
  std::vector<Translation> all(lines.size());
  size_t at = 0;
  translate_lines([&](bool) { return at < lines.size() ? std::optional(lines[at++]) : std::nullopt; },
                  [&](int64_t line, const Translation& translation) {
                    all[static_cast<size_t>(line)] = translation;
                    if (advance) advance(1);
                  });
  return all;
}

}  // namespace calque

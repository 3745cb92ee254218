#include "calque/decode/translator.h"

#include <torch/types.h>

#include <deque>
#include <map>

#include "calque/base/error.h"
#include "calque/base/text.h"
#include "calque/base/unicode.h"
#include "calque/data/corpus.h"
#include "calque/decode/segments.h"
#include "calque/model/packed_decoder.h"

namespace calque {
namespace {

constexpr const char* example_prompt = "French:\n{source}\nEnglish:\n{target}";

}  // namespace

Translator::Translator(std::shared_ptr<const Decoder> decoder, Tokenizer tokenizer,
                       const DecodeConfig& config, Packing packing)
    : decoder_(std::move(decoder)), tokenizer_(std::move(tokenizer)), config_(config), packing_(packing) {
  check_decode(config_);
  if (decoder_->embedding->weight.device().is_cpu())
    packed_ = std::make_shared<PackedDecoder>(*decoder_, packing);
  use_format(pair_format(tokenizer_, decoder_->config().prompt));
  if (!config_.shots.empty()) show_examples(config_.shots);
}

void Translator::use_format(SequenceFormat format) {
  options_.format = std::move(format);
  options_.forbidden.clear();
  for (int32_t id = 0; id < tokenizer_.size(); ++id) {
    if (id != options_.format.end && (tokenizer_.is_control(id) || id == tokenizer_.unknown_id()))
      options_.forbidden.push_back(id);
  }
}

void Translator::show_examples(const std::filesystem::path& file) {
  CorpusPart part;
  part.pairs = file;
  PairReader reader(part);
  std::vector<std::pair<std::string, std::string>> examples;
  for (SentencePair pair; reader.next(pair);) examples.emplace_back(clean(pair.source), clean(pair.target));
  if (examples.empty()) throw UserError(fmt::format("{}: no examples in it", file.string()));
  const std::string& prompt = decoder_->config().prompt;
  SequenceFormat format = example_format(tokenizer_, prompt.empty() ? example_prompt : prompt, examples);
  const int64_t rows = format.rows(0, 0), most = decoder_->config().max_positions;
  if (rows > most / 2)
    throw UserError(
        fmt::format("{}: its examples take {} of the model's {} positions", file.string(), rows, most),
        "half of them must be left for the sentence and its translation");
  use_format(std::move(format));
  config_.shots = file;
}

SearchOptions Translator::search_options() const {
  SearchOptions options = options_;
  options.decode = config_;
  return options;
}

std::string Translator::clean(std::string_view line) {
  std::u32string points = code_points(line);
  for (char32_t& point : points) {
    if (point < 0x20 || (point >= 0x7F && point < 0xA0)) point = U' ';
  }
  std::string text;
  for (const auto& word : split_words(points)) text += (text.empty() ? "" : " ") + to_utf8(word);
  return text;
}

std::vector<std::string> Translator::parts_of(const std::string& line) const {
  const int64_t most = std::min(config_.split_tokens, longest_source(decoder_->config(), options_.format));
  const auto fits = [&](std::string_view part) {
    // A token is rarely more than a few bytes; what is much longer need not be encoded to know.
    return static_cast<int64_t>(part.size()) <= 64 * most &&
           static_cast<int64_t>(tokenizer_.encode(part).size()) <= most;
  };
  if (fits(line)) return {line};
  return split_text(line, fits);
}

// The rank-th best of each part; a part that has fewer gives its last.
TranslatedText Translator::join(const std::vector<std::vector<Hypothesis>>& parts, size_t rank) const {
  TranslatedText joined;
  for (const auto& hypotheses : parts) {
    if (hypotheses.empty()) continue;
    const Hypothesis& hypothesis = hypotheses[std::min(rank, hypotheses.size() - 1)];
    const std::string text = tokenizer_.decode(hypothesis.tokens);
    // A byte piece can stand for half a character; a line feed would break one line in two.
    const std::string cleaned = clean(text);
    if (!cleaned.empty()) joined.text += (joined.text.empty() ? "" : " ") + cleaned;
    joined.score += hypothesis.score;
    joined.log_probability += hypothesis.log_probability;
    joined.complete = joined.complete && hypothesis.ended;
    joined.parts.push_back(hypothesis);
  }
  return joined;
}

void Translator::translate_lines(const NextLine& next, const LineDone& done,
                                 const std::string& prefix) const {
  struct Line {
    std::vector<std::string> sources;
    std::vector<std::vector<Hypothesis>> parts;
    size_t missing = 0;
  };
  std::map<int64_t, Line> lines;                         // read, not yet given out
  std::map<int64_t, std::pair<int64_t, size_t>> places;  // request → line, part
  std::deque<SearchRequest> waiting;
  int64_t read = 0, given = 0, requests = 0;
  const std::vector<int32_t> prefix_tokens =
      prefix.empty() ? std::vector<int32_t>{} : tokenizer_.encode(prefix);

  const auto give_out = [&] {
    for (auto found = lines.find(given); found != lines.end() && found->second.missing == 0;
         found = lines.find(given)) {
      Translation translation;
      translation.sources = std::move(found->second.sources);
      size_t ranks = 1;
      for (const auto& hypotheses : found->second.parts) ranks = std::max(ranks, hypotheses.size());
      for (size_t rank = 0; rank < ranks; ++rank) translation.best.push_back(join(found->second.parts, rank));
      lines.erase(found);
      done(given++, translation);
    }
  };
  const NextRequest next_request = [&](bool wait) -> std::optional<SearchRequest> {
    while (waiting.empty()) {
      auto text = next(wait);
      if (!text) return std::nullopt;
      Line& line = lines[read];
      const std::string cleaned = clean(*text);
      if (!cleaned.empty()) line.sources = parts_of(cleaned);
      line.parts.resize(line.sources.size());
      line.missing = line.sources.size();
      for (size_t part = 0; part < line.sources.size(); ++part) {
        places[requests] = {read, part};
        waiting.push_back({requests++, tokenizer_.encode(line.sources[part]),
                           part == 0 ? prefix_tokens : std::vector<int32_t>{}});
      }
      ++read;
      give_out();  // an empty line may be all that was waited for
    }
    SearchRequest request = std::move(waiting.front());
    waiting.pop_front();
    return request;
  };
  const RequestDone request_done = [&](int64_t id, std::vector<Hypothesis> hypotheses) {
    const auto [line, part] = places.at(id);
    places.erase(id);
    lines.at(line).parts[part] = std::move(hypotheses);
    --lines.at(line).missing;
    give_out();
  };
  search(model(), search_options(), next_request, request_done);
}

Translation Translator::translate(const std::string& line, const std::string& prefix,
                                  const LineProgress& progress) const {
  Translation translation;
  const std::string cleaned = clean(line);
  if (!cleaned.empty()) translation.sources = parts_of(cleaned);
  std::vector<std::vector<Hypothesis>> parts;
  bool stopped = false;
  for (size_t part = 0; part < translation.sources.size() && !stopped; ++part) {
    // One after the other, so that what is shown while it is made only grows.
    std::optional<SearchRequest> request =
        SearchRequest{static_cast<int64_t>(part), tokenizer_.encode(translation.sources[part]),
                      part == 0 && !prefix.empty() ? tokenizer_.encode(prefix) : std::vector<int32_t>{}};
    parts.emplace_back();
    const RequestProgress step = [&](int64_t, std::span<const int32_t> tokens) {
      if (!progress) return true;
      const std::string before = join(parts, 0).text;
      stopped = !progress(before + (before.empty() ? "" : " ") + clean(tokenizer_.decode(tokens)));
      return !stopped;
    };
    search(
        model(), search_options(), [&](bool) { return std::exchange(request, std::nullopt); },
        [&](int64_t, std::vector<Hypothesis> hypotheses) { parts.back() = std::move(hypotheses); }, step);
  }
  size_t ranks = 1;
  for (const auto& hypotheses : parts) ranks = std::max(ranks, hypotheses.size());
  for (size_t rank = 0; rank < ranks; ++rank) translation.best.push_back(join(parts, rank));
  return translation;
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

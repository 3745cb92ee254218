#include "calque/decode/translator.h"

#include <torch/types.h>

#include <algorithm>
#include <deque>
#include <map>

#include "calque/base/error.h"
#include "calque/base/text.h"
#include "calque/base/unicode.h"
#include "calque/data/corpus.h"
#include "calque/model/decoder.h"

namespace calque {
namespace {

constexpr const char* example_prompt = "French:\n{source}\nEnglish:\n{target}";

// Single bytes may be part of a letter.
bool continues_a_word(const Tokenizer& tokenizer, int32_t id) {
  const std::string piece = tokenizer.piece(id);
  const std::u32string points = code_points(piece);
  const bool is_byte = piece.starts_with("<0x");
  return !tokenizer.begins_word(id) && !points.empty() &&
         (is_byte || is_letter(points.front()) || is_number(points.front()));
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
  auto continuations = std::make_shared<std::vector<int32_t>>();
  for (int32_t id = 0; id < tokenizer_.size(); ++id) {
    if (id != options_.format.end && continues_a_word(tokenizer_, id)) continuations->push_back(id);
  }
  continuations_ = std::move(continuations);
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

void Translator::translate_lines(const NextLine& next, const LineDone& done, const std::string& prefix,
                                 const LineNumbers& numbers) const {
  const auto decode = std::make_shared<const DecodeConfig>(config_);
  std::map<int64_t, LineSearch> lines;  // read, not yet delivered
  std::map<int64_t, int64_t> line_of;   // request → line
  std::deque<int64_t> waiting;          // lines with parts to search for
  int64_t read = 0, delivered = 0, requests = 0;

  const auto deliver = [&] {
    for (auto found = lines.find(delivered); found != lines.end() && found->second.is_done();
         found = lines.find(delivered)) {
      const Translation translation = found->second.finish();
      lines.erase(found);
      done(delivered++, translation);
    }
  };
  const NextRequest next_request = [&](bool wait) -> std::optional<SearchRequest> {
    while (waiting.empty()) {
      const auto text = next(wait);
      if (!text) return std::nullopt;
      if (lines.try_emplace(read, *this, *text, prefix, decode).first->second.has_next())
        waiting.push_back(read);
      ++read;
      deliver();  // the line may need no search, and be the next to come out
    }
    const int64_t line = waiting.front();
    line_of[requests] = line;
    SearchRequest request = lines.at(line).next(requests++);
    // Of the line and its part, whatever else is translated, and by whom.
    request.random_stream = ((numbers.first + line * numbers.stride) << 20) + *request.random_stream;
    if (!lines.at(line).has_next()) waiting.pop_front();
    return request;
  };
  const RequestDone request_done = [&](int64_t id, std::vector<Hypothesis> hypotheses) {
    const int64_t line = line_of.at(id);
    line_of.erase(id);
    LineSearch& search = lines.at(line);
    const bool was_waiting = search.has_next();
    search.accept(id, std::move(hypotheses));
    if (search.has_next() && !was_waiting) waiting.push_back(line);  // it looped
    deliver();
  };
  search().run(next_request, request_done);
}

Translation Translator::translate(const std::string& line, const std::string& prefix,
                                  const LineProgress& progress) const {
  LineSearch search_of_line(*this, line, prefix, std::make_shared<const DecodeConfig>(config_));
  bool busy = false, stopped = false;
  // One part after the other, so that the shown text only grows.
  const NextRequest next = [&](bool) -> std::optional<SearchRequest> {
    if (busy || stopped || !search_of_line.has_next()) return std::nullopt;
    busy = true;
    return search_of_line.next(0);
  };
  const RequestDone done = [&](int64_t id, std::vector<Hypothesis> found) {
    busy = false;
    search_of_line.accept(id, std::move(found));
  };
  RequestProgress step;
  if (progress) {
    step = [&](int64_t id, std::span<const int32_t> tokens) {
      search_of_line.set_progress(id, tokens);
      stopped = !progress(search_of_line.text_so_far());
      return !stopped;
    };
  }
  search().run(next, done, step);
  return search_of_line.finish();
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

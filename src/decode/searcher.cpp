#include "searcher.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/decode/sampling.h"

namespace calque {
namespace {

// Defer beams that are this many nats behind the best until the others fail to fill the beam. A smaller value
// would save few more rows and take many more passes.
constexpr double defer_margin = 4;  // mutate: speed only

double penalty(const DecodeConfig& config, int64_t tokens) {
  return std::pow((5.0 + static_cast<double>(tokens)) / 6.0, config.length_penalty);
}

// Bans the tokens that would repeat an n-gram of the translation.
void ban_repeats(const std::vector<int32_t>& tokens, int64_t order, int64_t row,
                 std::vector<BannedToken>& bans) {
  const auto count = static_cast<int64_t>(tokens.size());
  if (order < 1 || count < order) return;
  const auto last = tokens.end() - (order - 1);
  for (int64_t begin = 0; begin + order <= count; ++begin) {
    if (std::equal(last, tokens.end(), tokens.begin() + begin))
      bans.push_back({row, tokens[static_cast<size_t>(begin + order - 1)]});
  }
}

void end(const DecodeConfig& config, std::vector<Hypothesis>& ended, Hypothesis hypothesis, bool by_itself) {
  hypothesis.ended = by_itself;
  hypothesis.score = hypothesis.log_probability /
                     penalty(config, static_cast<int64_t>(hypothesis.token_log_probabilities.size()));
  ended.push_back(std::move(hypothesis));
}

Hypothesis with(const Hypothesis& so_far, float log_probability) {
  Hypothesis longer = so_far;
  longer.token_log_probabilities.push_back(log_probability);
  longer.log_probability += log_probability;
  return longer;
}

}  // namespace

Searcher::Searcher(const Decoder& decoder, const SearchOptions& options)
    : decoder_(decoder), options_(options), device_(decoder_.device()), cache_(decoder_) {}

void Searcher::run(RequestQueue& queue, int64_t first, int64_t most) {
  for (;;) {
    admit(queue, std::exchange(first, most));
    if (sentences_.empty()) return;
    if (!std::exchange(shared_is_read_, true)) read_shared();
    step();
    for (size_t i = 0; i < sentences_.size();) {
      Sentence& sentence = *sentences_[i];
      if (is_done(sentence) && !begin_list(sentence)) {
        deliver(sentence, queue);
        drop(i);
      } else if (sentence.is_read &&
                 !queue.progress(sentence.request.id, sentence.beams.front().so_far.tokens)) {
        give_back(sentence);
        drop(i);
      } else {
        ++i;
      }
    }
  }
}

void Searcher::drop(size_t index) { sentences_.erase(sentences_.begin() + static_cast<int64_t>(index)); }

void Searcher::admit(RequestQueue& queue, int64_t most) {
  while (static_cast<int64_t>(sentences_.size()) < most) {
    auto request = queue.next();
    if (!request) return;
    auto sentence = std::make_unique<Sentence>();
    const DecodeConfig& config = request->decode ? *request->decode : options_.decode;
    sentence->config = &config;
    const SequenceFormat& format = options_.format;
    auto& prompt = sentence->prompt;
    prompt = format.begin;
    prompt.insert(prompt.end(), request->source.begin(), request->source.end());
    prompt.insert(prompt.end(), format.separator.begin(), format.separator.end());
    if (decoder_.config().is_prefix()) sentence->prefix_rows = static_cast<int64_t>(prompt.size());
    sentence->first_query = prompt.size() - 1;
    prompt.insert(prompt.end(), request->prefix.begin(), request->prefix.end());
    const auto rows = static_cast<int64_t>(prompt.size());
    if (rows >= decoder_.config().context_length) {
      throw UserError(fmt::format("a source of {} tokens is too long for a context of {} tokens",
                                  request->source.size(), decoder_.config().context_length));
    }
    sentence->max_tokens =
        std::min(decoder_.config().context_length - rows,
                 static_cast<int64_t>(config.max_length_ratio * static_cast<double>(request->source.size())) +
                     config.max_length_extra);
    sentence->request = std::move(*request);
    sentences_.push_back(std::move(sentence));
  }
}

// How many of a sentence's beams to run through the model. No continuation is more probable than its beam,
// so beams far behind the best are deferred: they are not needed if the others fill the beam.
size_t Searcher::beams_to_query(const Sentence& sentence) const {
  const auto& beams = sentence.beams;
  if (sentence.config->sample) return beams.size();
  size_t count = sentence.scored + 1;
  while (count < beams.size() &&
         beams[count].so_far.log_probability > beams.front().so_far.log_probability - defer_margin)
    ++count;
  return count;
}

// The position of a sentence's row, as batch_layout() has it: with target_positions=restart it counts from
// the last row of the separator, which predicts the first token of the target.
int64_t Searcher::position_of(const Sentence& sentence, size_t row) const {
  const bool restarts = decoder_.config().restarts_positions() && row >= sentence.first_query;
  return static_cast<int64_t>(restarts ? row - sentence.first_query : row);
}

// One pass for some or all beams of all sentences. Sentences with enough scored beams are extended by one
// token.
void Searcher::step() {
  std::vector<int64_t> tokens, positions, query_rows;
  Layout layout;
  layout.offsets = {0};
  layout.query_offsets = {0};
  PassRows rows;
  const auto end_pair = [&](int64_t prefix_rows) {  // its last row is the query
    layout.offsets.push_back(static_cast<int64_t>(tokens.size()));
    layout.prefix_ends.push_back(0);
    query_rows.push_back(static_cast<int64_t>(tokens.size()) - 1);
    layout.query_offsets.push_back(static_cast<int64_t>(query_rows.size()));
    rows.visible_offsets.push_back(static_cast<int64_t>(rows.visible.size()));
    rows.prefix_lengths.push_back(prefix_rows);
  };
  const auto see = [&](const std::vector<int32_t>& slots) {
    rows.visible.insert(rows.visible.end(), slots.begin(), slots.end());
  };
  std::vector<BannedToken> bans;
  for (const auto& sentence : sentences_) {
    if (!sentence->is_read) {
      sentence->is_read = true;
      sentence->prompt_slots = shared_slots_;
      while (sentence->prompt_slots.size() < sentence->prompt.size()) {
        positions.push_back(position_of(*sentence, sentence->prompt_slots.size()));
        tokens.push_back(sentence->prompt[sentence->prompt_slots.size()]);
        sentence->prompt_slots.push_back(cache_.take());
        rows.slots.push_back(sentence->prompt_slots.back());
      }
      see(sentence->prompt_slots);
      end_pair(sentence->prefix_rows);
      Beam first;
      first.so_far.tokens = sentence->request.prefix;
      sentence->beams.assign(sentence->config->sample ? static_cast<size_t>(sentence->width()) : 1, first);
      sentence->queried = 1;  // the prompt is one row, whatever the number of beams
      const int64_t query = static_cast<int64_t>(query_rows.size()) - 1;
      ban_repeats(first.so_far.tokens, sentence->config->no_repeat_ngram, query, bans);
      if (sentence->request.not_after_prefix) {
        for (const int32_t token : *sentence->request.not_after_prefix) bans.push_back({query, token});
      }
      continue;
    }
    sentence->queried = beams_to_query(*sentence);
    for (size_t i = sentence->scored; i < sentence->queried; ++i) {
      Beam& beam = sentence->beams[i];
      const int32_t slot = cache_.take();
      sentence->target_slots.push_back(slot);
      positions.push_back(position_of(*sentence, sentence->prompt.size() + beam.slots.size()));
      beam.slots.push_back(slot);
      rows.slots.push_back(slot);
      tokens.push_back(beam.so_far.tokens.back());
      see(sentence->prompt_slots);
      see(beam.slots);
      end_pair(0);
      ban_repeats(beam.so_far.tokens, sentence->config->no_repeat_ngram,
                  static_cast<int64_t>(query_rows.size()) - 1, bans);
    }
  }
  layout.positions = index_tensor(positions, device_);
  layout.query_rows = index_tensor(query_rows, device_);
  const torch::Tensor logits = run(tokens, layout, rows);
  // Sampled sentences first: top_candidates() overwrites the logits of banned tokens.
  std::vector<int64_t> first_rows;
  int64_t row = 0, widest = 0;
  for (const auto& sentence : sentences_) {
    first_rows.push_back(row);
    row += static_cast<int64_t>(sentence->queried - sentence->scored);
    if (!sentence->config->sample) widest = std::max(widest, sentence->width());
  }
  torch::Tensor on_cpu;
  for (size_t i = 0; i < sentences_.size(); ++i) {
    if (!sentences_[i]->config->sample) continue;
    if (!on_cpu.defined()) on_cpu = logits.to(torch::kCPU, torch::kFloat32).contiguous();
    draw(*sentences_[i], on_cpu, first_rows[i], bans);
  }
  if (widest == 0) return;
  const Candidates candidates = top_candidates(logits, 2 * widest, options_.forbidden, bans);
  for (size_t i = 0; i < sentences_.size(); ++i) {
    if (!sentences_[i]->config->sample) extend(*sentences_[i], candidates, first_rows[i]);
  }
}

torch::Tensor Searcher::run(const std::vector<int64_t>& tokens, const Layout& layout,
                            const PassRows& rows) const {
  return decoder_.logits(
      index_tensor(tokens, device_), layout,
      {{rows.slots, rows.visible, rows.visible_offsets, rows.prefix_lengths}, cache_.layers()},
      options_.hook);
}

// Reads the common beginning of all prompts (few-shot examples) once. Causal attention only, where no row
// depends on what follows; a single <s> is not worth a pass.
void Searcher::read_shared() {
  const auto& begin = options_.format.begin;
  if (decoder_.config().attention != AttentionKind::causal || begin.size() < 2) return;
  std::vector<int64_t> positions(begin.size());
  std::iota(positions.begin(), positions.end(), 0);
  while (shared_slots_.size() < begin.size()) shared_slots_.push_back(cache_.take());
  const auto rows = static_cast<int64_t>(begin.size());
  Layout layout;
  layout.offsets = {0, rows};
  layout.prefix_ends = {0};
  layout.query_offsets = {0, 1};
  layout.positions = index_tensor(positions, device_);
  layout.query_rows = index_tensor({rows - 1}, device_);
  run({begin.begin(), begin.end()}, layout, {shared_slots_, shared_slots_, {0, rows}, {0}});
}

// Takes the candidates of the queried beams, and keeps the best continuations of all beams as soon as they
// are certain.
void Searcher::extend(Sentence& sentence, const Candidates& candidates, int64_t first_row) {
  auto& choices = sentence.choices;
  for (int64_t row = first_row; sentence.scored < sentence.queried; ++sentence.scored, ++row) {
    // Sentences beside it may have wider beams, and so more candidates than it may see.
    const int64_t first = row * candidates.count;
    const int64_t last = first + std::min(candidates.count, 2 * sentence.width());
    const auto best = static_cast<size_t>(first);
    if (candidates.tokens[best] < 0 || !std::isfinite(candidates.log_probabilities[best])) refuse_logits();
    for (int64_t i = first; i < last; ++i) {
      if (candidates.tokens[static_cast<size_t>(i)] < 0) continue;
      const float gain = candidates.log_probabilities[static_cast<size_t>(i)];
      choices.push_back({sentence.scored, candidates.tokens[static_cast<size_t>(i)], gain,
                         sentence.beams[sentence.scored].so_far.log_probability + gain});
    }
  }
  // Ties go to the better beam, then to the lower token: the order in which they stand.
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.total > b.total; });
  grow(sentence);
}

// Extends the beams by one token, unless a beam that is not scored yet could change which are kept.
void Searcher::grow(Sentence& sentence) {
  const double best_of_the_rest = sentence.scored < sentence.beams.size()
                                      ? sentence.beams[sentence.scored].so_far.log_probability
                                      : -std::numeric_limits<double>::infinity();
  const DecodeConfig& config = *sentence.config;
  std::vector<Beam> longer;
  std::vector<Hypothesis> ended = sentence.ended;
  // With early stopping a finished translation keeps its place in the beam.
  const auto is_full = [&] {
    return static_cast<int64_t>(longer.size() + (config.early_stopping ? ended.size() : 0)) >=
           sentence.width();
  };
  for (size_t rank = 0; rank < sentence.choices.size() && !is_full(); ++rank) {
    const Choice& choice = sentence.choices[rank];
    if (choice.total < best_of_the_rest) return;
    const Beam& parent = sentence.beams[choice.beam];
    Hypothesis hypothesis = with(parent.so_far, choice.log_probability);
    if (choice.token == options_.format.end) {
      if (static_cast<int64_t>(rank) < sentence.width() && !cannot_win(sentence, ended, hypothesis))
        end(config, ended, std::move(hypothesis), true);
      continue;
    }
    hypothesis.tokens.push_back(choice.token);
    longer.push_back({std::move(hypothesis), parent.slots});
  }
  if (!is_full() && sentence.scored < sentence.beams.size()) return;
  // Beams are sorted by log-probability: those that cannot win are the last.
  while (!longer.empty() && cannot_win(sentence, ended, longer.back().so_far)) longer.pop_back();
  sentence.beams = std::move(longer);
  sentence.ended = std::move(ended);
  sentence.choices.clear();
  sentence.queried = sentence.scored = 0;
  free_dead_slots(sentence);
}

// Gives the cache rows back that no beam refers to any more.
void Searcher::free_dead_slots(Sentence& sentence) {
  is_alive_.resize(static_cast<size_t>(cache_.capacity()));
  for (const Beam& beam : sentence.beams) {
    for (const int32_t slot : beam.slots) is_alive_[static_cast<size_t>(slot)] = 1;
  }
  std::vector<int32_t> dead;
  std::erase_if(sentence.target_slots, [&](int32_t slot) {
    if (is_alive_[static_cast<size_t>(slot)] == 0) dead.push_back(slot);
    return is_alive_[static_cast<size_t>(slot)] == 0;
  });
  cache_.give_back(dead);
  for (const int32_t slot : sentence.target_slots) is_alive_[static_cast<size_t>(slot)] = 0;
}

// True if it cannot become one of the n best, even if all further tokens had probability 1 up to the length
// limit.
bool Searcher::cannot_win(const Sentence& sentence, const std::vector<Hypothesis>& ended,
                          const Hypothesis& so_far) const {
  const double possible = so_far.log_probability / penalty(*sentence.config, sentence.max_tokens);
  return std::count_if(ended.begin(), ended.end(),
                       [&](const Hypothesis& one) { return one.score >= possible; }) >= sentence.wanted;
}

// Samples one token per beam: a pure function of the seed, the request, the beam and the position.
void Searcher::draw(Sentence& sentence, const torch::Tensor& logits, int64_t first_row,
                    const std::vector<BannedToken>& bans) {
  const DecodeConfig& config = *sentence.config;
  const bool from_prompt = sentence.target_slots.empty();
  const int64_t vocabulary = logits.size(1);
  std::vector<Beam> longer;
  for (size_t beam = 0; beam < sentence.beams.size(); ++beam) {
    const int64_t row = first_row + (from_prompt ? 0 : static_cast<int64_t>(beam));
    const float* values = logits.const_data_ptr<float>() + row * vocabulary;
    std::vector<double> weights(values, values + vocabulary);
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (const double value : weights) sum += std::exp(value - largest);
    const double log_sum = largest + std::log(sum);
    if (!std::isfinite(log_sum)) refuse_logits();
    for (const int32_t token : options_.forbidden) weights[static_cast<size_t>(token)] = -INFINITY;
    for (const BannedToken& ban : bans) {
      if (ban.row == row) weights[static_cast<size_t>(ban.token)] = -INFINITY;
    }
    Beam& parent = sentence.beams[beam];
    const uint64_t seed =
        mix(mix(static_cast<uint64_t>(config.seed),
                static_cast<uint64_t>(sentence.request.random_stream.value_or(sentence.request.id))),
            beam, parent.so_far.token_log_probabilities.size());
    const auto token = static_cast<int32_t>(draw_token(weights, config, seed));
    Hypothesis hypothesis =
        with(parent.so_far, static_cast<float>(static_cast<double>(values[token]) - log_sum));
    if (token == options_.format.end) {
      end(config, sentence.ended, std::move(hypothesis), true);
    } else {
      hypothesis.tokens.push_back(token);
      longer.push_back({std::move(hypothesis), parent.slots});
    }
  }
  sentence.beams = std::move(longer);
  sentence.queried = 0;
}

bool Searcher::is_done(Sentence& sentence) const {
  if (sentence.beams.empty()) return true;
  const DecodeConfig& config = *sentence.config;
  const auto tokens = static_cast<int64_t>(sentence.beams.front().so_far.token_log_probabilities.size());
  if (tokens >= sentence.max_tokens) {
    for (const Beam& beam : sentence.beams) {
      if (config.sample || static_cast<int64_t>(sentence.ended.size()) < sentence.wanted)
        end(config, sentence.ended, beam.so_far, false);
    }
    return true;
  }
  return config.early_stopping && !config.sample &&
         static_cast<int64_t>(sentence.ended.size()) >= sentence.width();
}

namespace {

void sort_by_score(std::vector<Hypothesis>& hypotheses) {
  std::stable_sort(hypotheses.begin(), hypotheses.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
}

}  // namespace

void Searcher::give_back(Sentence& sentence) {
  if (sentence.prompt_slots.size() > shared_slots_.size())
    cache_.give_back(std::span(sentence.prompt_slots).subspan(shared_slots_.size()));
  cache_.give_back(sentence.target_slots);
  sentence.prompt_slots.clear();
  sentence.target_slots.clear();
}

// Starts again for the whole list, once the best translation is known. False: nothing more is wanted.
bool Searcher::begin_list(Sentence& sentence) {
  if (sentence.config->sample || sentence.wanted == sentence.config->nbest) return false;
  sort_by_score(sentence.ended);
  sentence.best = sentence.ended.front();
  sentence.wanted = sentence.config->nbest;
  give_back(sentence);
  sentence.is_read = false;
  sentence.beams.clear();
  sentence.ended.clear();
  sentence.choices.clear();
  sentence.queried = sentence.scored = 0;
  return true;
}

void Searcher::deliver(Sentence& sentence, RequestQueue& queue) {
  give_back(sentence);
  auto& ended = sentence.ended;
  sort_by_score(ended);
  if (sentence.best) {
    std::erase_if(ended, [&](const Hypothesis& one) { return one.tokens == sentence.best->tokens; });
    ended.insert(ended.begin(), *sentence.best);
  }
  const auto most = static_cast<size_t>(sentence.config->nbest);
  if (ended.size() > most) ended.resize(most);
  queue.done(sentence.request.id, std::move(ended));
}

void Searcher::reset() {
  for (const auto& sentence : sentences_) give_back(*sentence);  // mutate: memory only
  sentences_.clear();
}

}  // namespace calque

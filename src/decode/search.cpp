#include "calque/decode/search.h"

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/decode/kv_cache.h"
#include "calque/decode/request_queue.h"
#include "calque/decode/sampling.h"
#include "calque/kernels/candidates.h"
#include "calque/model/packed_decoder.h"

namespace calque {
namespace {

constexpr int64_t sentences_of_a_worker = 4;  // fewer are not worth one
// A beam waits for what better ones offer if its log-probability is so much less than the best one's: then it
// is mostly not needed. Less would save few rows more and take many more passes.
constexpr double far_behind = 4;

// A translation under way.
struct Beam {
  Hypothesis so_far;
  std::vector<int32_t> slots;  // of its target's rows in the cache
};

// A continuation that a step offers.
struct Choice {
  size_t beam;
  int32_t token;
  float log_probability;
  double total;
};

struct Sentence {
  SearchRequest request;
  int64_t most_tokens = 0;            // of the target
  std::vector<int32_t> prompt;        // tokens before what is searched for, a forced prefix included
  int64_t prefix_rows = 0;            // rows of the prompt that see each other in both directions
  bool is_read = false;               // the prompt's rows are in the cache
  std::vector<int32_t> prompt_slots;  // the shared rows first
  std::vector<int32_t> target_slots;  // all that its beams ever took
  std::vector<Beam> beams;            // the most probable first
  size_t asked = 0, answered = 0;     // how many of them the model was asked about, and has answered
  std::vector<Choice> choices;        // of those answered
  std::vector<Hypothesis> ended;
};

double penalty(const DecodeConfig& config, int64_t tokens) {
  return std::pow((5.0 + static_cast<double>(tokens)) / 6.0, config.length_penalty);
}

// Tokens that would repeat an n-gram of the translation.
void ban_repeats(const std::vector<int32_t>& tokens, int64_t order, int64_t row, std::vector<Ban>& bans) {
  const auto count = static_cast<int64_t>(tokens.size());
  if (order < 1 || count < order) return;
  const auto last = tokens.end() - (order - 1);
  for (int64_t begin = 0; begin + order <= count; ++begin) {
    if (std::equal(last, tokens.end(), tokens.begin() + begin))
      bans.push_back({row, tokens[static_cast<size_t>(begin + order - 1)]});
  }
}

class Searcher {
 public:
  Searcher(const SearchModel& model, const SearchOptions& options)
      : packed_(model.packed),
        decoder_(model.decoder),
        options_(options),
        config_(options.decode),
        device_(decoder_.embedding->weight.device()),
        cache_(decoder_) {
    check_decode(config_);
  }

  // Until there is nothing left to do at this moment, with `most` sentences at a time, at first only so many,
  // so that other workers get their share. False: it was stopped.
  bool run(RequestQueue& queue, int64_t first, int64_t most, const RequestProgress& progress) {
    for (;;) {
      admit(queue, std::exchange(first, most));
      if (sentences_.empty()) return true;
      if (!std::exchange(shared_is_read_, true)) read_shared();
      step();
      for (size_t i = 0; i < sentences_.size();) {
        Sentence& sentence = *sentences_[i];
        if (is_done(sentence)) {
          deliver(sentence, queue);
          sentences_.erase(sentences_.begin() + static_cast<int64_t>(i));
          continue;
        }
        if (progress && !progress(sentence.request.id, sentence.beams.front().so_far.tokens)) return false;
        ++i;
      }
    }
  }

 private:
  int64_t width() const { return config_.sample ? config_.nbest : config_.beam; }

  void admit(RequestQueue& queue, int64_t most) {
    while (static_cast<int64_t>(sentences_.size()) < most) {
      auto request = queue.next();
      if (!request) return;
      auto sentence = std::make_unique<Sentence>();
      const SequenceFormat& format = options_.format;
      auto& prompt = sentence->prompt;
      prompt = format.begin;
      prompt.insert(prompt.end(), request->source.begin(), request->source.end());
      prompt.insert(prompt.end(), format.separator.begin(), format.separator.end());
      if (decoder_.config().attention == AttentionKind::prefix)
        sentence->prefix_rows = static_cast<int64_t>(prompt.size());
      prompt.insert(prompt.end(), request->prefix.begin(), request->prefix.end());
      const auto rows = static_cast<int64_t>(prompt.size());
      if (rows >= decoder_.config().max_positions) {
        throw UserError(fmt::format("a source of {} tokens is too long for a model of {} positions",
                                    request->source.size(), decoder_.config().max_positions));
      }
      sentence->most_tokens = std::min(
          decoder_.config().max_positions - rows,
          static_cast<int64_t>(config_.max_length_ratio * static_cast<double>(request->source.size())) +
              config_.max_length_more);
      sentence->request = std::move(*request);
      sentences_.push_back(std::move(sentence));
    }
  }

  // How many of a sentence's beams to ask the model about. No continuation is more probable than the beam
  // itself, so that the last beams need not be asked if those before offer enough that is better. So those
  // far behind the best wait for what the others say.
  size_t beams_to_ask(const Sentence& sentence) const {
    const auto& beams = sentence.beams;
    if (config_.sample) return beams.size();
    size_t count = sentence.answered + 1;
    while (count < beams.size() &&
           beams[count].so_far.log_probability > beams.front().so_far.log_probability - far_behind)
      ++count;
    return count;
  }

  // One pass over all sentences, for some or all of their beams; those that have heard enough grow by a
  // token.
  void step() {
    std::vector<int64_t> tokens, positions, query_rows;
    Layout layout;
    layout.offsets = {0};
    layout.query_offsets = {0};
    CachePass pass{{}, cache_.layers()};
    pass.rows.seen_offsets = {0};
    const auto end_pair = [&](int64_t prefix_rows) {  // asks for its last row
      layout.offsets.push_back(static_cast<int64_t>(tokens.size()));
      layout.prefix_ends.push_back(0);
      query_rows.push_back(static_cast<int64_t>(tokens.size()) - 1);
      layout.query_offsets.push_back(static_cast<int64_t>(query_rows.size()));
      pass.rows.seen_offsets.push_back(static_cast<int64_t>(pass.rows.seen.size()));
      pass.rows.prefixes.push_back(prefix_rows);
    };
    const auto see = [&](const std::vector<int32_t>& slots) {
      pass.rows.seen.insert(pass.rows.seen.end(), slots.begin(), slots.end());
    };
    std::vector<Ban> bans;
    for (const auto& sentence : sentences_) {
      if (!sentence->is_read) {
        sentence->is_read = true;
        sentence->prompt_slots = shared_slots_;
        while (sentence->prompt_slots.size() < sentence->prompt.size()) {
          positions.push_back(static_cast<int64_t>(sentence->prompt_slots.size()));
          tokens.push_back(sentence->prompt[sentence->prompt_slots.size()]);
          sentence->prompt_slots.push_back(cache_.take());
          pass.rows.slots.push_back(sentence->prompt_slots.back());
        }
        see(sentence->prompt_slots);
        end_pair(sentence->prefix_rows);
        Beam first;
        first.so_far.tokens = sentence->request.prefix;
        sentence->beams.assign(config_.sample ? static_cast<size_t>(width()) : 1, first);
        sentence->asked = 1;  // whatever the number of beams to come
        ban_repeats(first.so_far.tokens, config_.no_repeat_ngram, static_cast<int64_t>(query_rows.size()) - 1,
                    bans);
        continue;
      }
      sentence->asked = beams_to_ask(*sentence);
      for (size_t i = sentence->answered; i < sentence->asked; ++i) {
        Beam& beam = sentence->beams[i];
        const int32_t slot = cache_.take();
        sentence->target_slots.push_back(slot);
        positions.push_back(static_cast<int64_t>(sentence->prompt.size() + beam.slots.size()));
        beam.slots.push_back(slot);
        pass.rows.slots.push_back(slot);
        tokens.push_back(beam.so_far.tokens.back());
        see(sentence->prompt_slots);
        see(beam.slots);
        end_pair(0);
        ban_repeats(beam.so_far.tokens, config_.no_repeat_ngram, static_cast<int64_t>(query_rows.size()) - 1,
                    bans);
      }
    }
    layout.positions = index_tensor(positions, device_);
    layout.query_rows = index_tensor(query_rows, device_);
    const torch::Tensor logits = run(tokens, layout, pass);
    int64_t row = 0;
    if (config_.sample) {
      const torch::Tensor all = logits.to(torch::kCPU, torch::kFloat32).contiguous();
      for (const auto& sentence : sentences_) row += draw(*sentence, all, row, bans);
      return;
    }
    const Candidates candidates = best_candidates(logits, 2 * width(), options_.forbidden, bans);
    for (const auto& sentence : sentences_) row += extend(*sentence, candidates, row);
  }

  torch::Tensor run(const std::vector<int64_t>& tokens, const Layout& layout, const CachePass& pass) const {
    const torch::Tensor ids = index_tensor(tokens, device_);
    return packed_ != nullptr ? packed_->logits(ids, layout, pass) : decoder_.logits(ids, layout, pass);
  }

  // What all prompts begin with, examples above all, is read once. Only where no row sees what comes behind
  // it; a single <s> is not worth a pass.
  void read_shared() {
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
    run({begin.begin(), begin.end()}, layout,
        {{shared_slots_, shared_slots_, {0, rows}, {0}}, cache_.layers()});
  }

  static Hypothesis with(const Hypothesis& so_far, float log_probability) {
    Hypothesis longer = so_far;
    longer.token_log_probabilities.push_back(log_probability);
    longer.log_probability += log_probability;
    return longer;
  }

  void end(std::vector<Hypothesis>& ended, Hypothesis hypothesis, bool by_itself) const {
    hypothesis.ended = by_itself;
    hypothesis.score = hypothesis.log_probability /
                       penalty(config_, static_cast<int64_t>(hypothesis.token_log_probabilities.size()));
    ended.push_back(std::move(hypothesis));
  }

  // Hears what the step's candidates say about the beams that were asked, and keeps the best continuations of
  // all beams as soon as they are certain. Gives the rows that the sentence had in the step.
  int64_t extend(Sentence& sentence, const Candidates& candidates, int64_t first_row) const {
    auto& choices = sentence.choices;
    const auto rows = static_cast<int64_t>(sentence.asked - sentence.answered);
    for (int64_t row = first_row; sentence.answered < sentence.asked; ++sentence.answered, ++row) {
      for (int64_t i = row * candidates.count; i < (row + 1) * candidates.count; ++i) {
        if (candidates.tokens[static_cast<size_t>(i)] < 0) continue;
        const float gain = candidates.log_probabilities[static_cast<size_t>(i)];
        choices.push_back({sentence.answered, candidates.tokens[static_cast<size_t>(i)], gain,
                           sentence.beams[sentence.answered].so_far.log_probability + gain});
      }
    }
    // Ties go to the better beam, then to the lower token: the order in which they stand.
    std::stable_sort(choices.begin(), choices.end(),
                     [](const Choice& a, const Choice& b) { return a.total > b.total; });
    grow(sentence);
    return rows;
  }

  // One more token for the beams, unless one that was not asked yet could have a say in which are kept.
  void grow(Sentence& sentence) const {
    const double best_of_the_rest = sentence.answered < sentence.beams.size()
                                        ? sentence.beams[sentence.answered].so_far.log_probability
                                        : -std::numeric_limits<double>::infinity();
    std::vector<Beam> longer;
    std::vector<Hypothesis> ended = sentence.ended;
    // One that has ended keeps its place in the beam if the search stops when all have.
    const auto is_full = [&] {
      return static_cast<int64_t>(longer.size() + (config_.early_stop ? ended.size() : 0)) >= width();
    };
    for (size_t rank = 0; rank < sentence.choices.size() && !is_full(); ++rank) {
      const Choice& choice = sentence.choices[rank];
      if (choice.total < best_of_the_rest) return;
      const Beam& parent = sentence.beams[choice.beam];
      Hypothesis hypothesis = with(parent.so_far, choice.log_probability);
      if (choice.token == options_.format.end) {
        if (static_cast<int64_t>(rank) < width() && !is_hopeless(sentence, ended, hypothesis))
          end(ended, std::move(hypothesis), true);
        continue;
      }
      hypothesis.tokens.push_back(choice.token);
      longer.push_back({std::move(hypothesis), parent.slots});
    }
    if (!is_full() && sentence.answered < sentence.beams.size()) return;
    // They stand in the order of their sums, so that those without hope are the last ones.
    while (!longer.empty() && is_hopeless(sentence, ended, longer.back().so_far)) longer.pop_back();
    sentence.beams = std::move(longer);
    sentence.ended = std::move(ended);
    sentence.choices.clear();
    sentence.asked = sentence.answered = 0;
  }

  // True if it cannot become one of the translations to give, even if no further token cost anything and it
  // grew as long as it may.
  bool is_hopeless(const Sentence& sentence, const std::vector<Hypothesis>& ended,
                   const Hypothesis& so_far) const {
    const double possible = so_far.log_probability / penalty(config_, sentence.most_tokens);
    return std::count_if(ended.begin(), ended.end(),
                         [&](const Hypothesis& one) { return one.score >= possible; }) >= config_.nbest;
  }

  // One token for each beam by chance; what is drawn follows from the seed, the request, the beam and the
  // place alone.
  int64_t draw(Sentence& sentence, const torch::Tensor& logits, int64_t first_row,
               const std::vector<Ban>& bans) {
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
      for (const int32_t token : options_.forbidden) weights[static_cast<size_t>(token)] = -INFINITY;
      for (const Ban& ban : bans) {
        if (ban.row == row) weights[static_cast<size_t>(ban.token)] = -INFINITY;
      }
      Beam& parent = sentence.beams[beam];
      const uint64_t seed =
          mix(mix(static_cast<uint64_t>(config_.seed), static_cast<uint64_t>(sentence.request.id)), beam,
              parent.so_far.token_log_probabilities.size());
      const auto token = static_cast<int32_t>(draw_token(weights, config_, seed));
      Hypothesis hypothesis =
          with(parent.so_far, static_cast<float>(static_cast<double>(values[token]) - log_sum));
      if (token == options_.format.end) {
        end(sentence.ended, std::move(hypothesis), true);
      } else {
        hypothesis.tokens.push_back(token);
        longer.push_back({std::move(hypothesis), parent.slots});
      }
    }
    sentence.beams = std::move(longer);
    return static_cast<int64_t>(std::exchange(sentence.asked, 0));
  }

  bool is_done(Sentence& sentence) const {
    if (sentence.beams.empty()) return true;
    const auto tokens = static_cast<int64_t>(sentence.beams.front().so_far.token_log_probabilities.size());
    if (tokens >= sentence.most_tokens) {
      if (config_.sample) {
        for (const Beam& beam : sentence.beams) end(sentence.ended, beam.so_far, false);
      } else if (static_cast<int64_t>(sentence.ended.size()) < config_.nbest) {
        for (const Beam& beam : sentence.beams) {
          if (static_cast<int64_t>(sentence.ended.size()) < config_.nbest)
            end(sentence.ended, beam.so_far, false);
        }
      }
      return true;
    }
    return config_.early_stop && !config_.sample && static_cast<int64_t>(sentence.ended.size()) >= width();
  }

  void deliver(Sentence& sentence, RequestQueue& queue) {
    cache_.give_back(std::span(sentence.prompt_slots).subspan(shared_slots_.size()));
    cache_.give_back(sentence.target_slots);
    auto& ended = sentence.ended;
    std::stable_sort(ended.begin(), ended.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    if (static_cast<int64_t>(ended.size()) > config_.nbest) ended.resize(static_cast<size_t>(config_.nbest));
    queue.done(sentence.request.id, std::move(ended));
  }

  const PackedDecoder* packed_;
  const Decoder& decoder_;
  const SearchOptions& options_;
  const DecodeConfig& config_;
  torch::Device device_;
  KvCache cache_;
  bool shared_is_read_ = false;
  std::vector<int32_t> shared_slots_;  // rows that begin every prompt, kept once
  std::vector<std::unique_ptr<Sentence>> sentences_;
};

}  // namespace

int64_t longest_source(const ModelConfig& model, const SequenceFormat& format) {
  return std::max<int64_t>(1, (model.max_positions - format.rows(0, 0)) / 2);
}

// With few sentences at hand the threads share the work of one step; with many each of them searches for
// itself, and they meet at the queue alone.
void search(const SearchModel& model, const SearchOptions& options, const NextRequest& next,
            const RequestDone& done, const RequestProgress& progress) {
  const torch::NoGradGuard no_gradients;
  const int64_t batch = options.decode.batch;
  RequestQueue queue(next, done);
  std::vector<std::unique_ptr<Searcher>> searchers;
  while (const int64_t ahead = queue.look_ahead(batch)) {
    const int64_t threads = at::get_num_threads();
    const bool alone = progress || model.packed == nullptr || ahead < threads * sentences_of_a_worker;
    const int64_t workers = alone ? 1 : threads;
    while (static_cast<int64_t>(searchers.size()) < workers)
      searchers.push_back(std::make_unique<Searcher>(model, options));
    if (workers == 1) {
      if (!searchers.front()->run(queue, batch, batch, progress)) return;
      continue;
    }
    queue.end_when_dry();
    const int64_t first = (ahead + workers - 1) / workers, most = (batch + workers - 1) / workers;
    at::parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
      const torch::NoGradGuard no_gradients_here;
      try {
        for (int64_t i = begin; i < end; ++i) searchers[static_cast<size_t>(i)]->run(queue, first, most, {});
      } catch (...) {
        queue.stop();  // the others end what they have begun
        throw;
      }
    });
  }
}

}  // namespace calque

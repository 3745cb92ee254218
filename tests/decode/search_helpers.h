// Small models with sharp choices, and searches written as plainly as can be, to hold the real one against.
#pragma once

#include "calque/decode/search.h"

#include <cmath>
#include <map>
#include <numeric>

#include "calque/base/error.h"
#include "calque/decode/kv_cache.h"
#include "calque/decode/scorer.h"
#include "calque/model/batch_layout.h"
#include "tiny_model.h"

namespace calque {

constexpr int32_t end_token = 2;

inline ModelConfig search_model(AttentionKind attention) {
  ModelConfig config = tiny_config(60);
  config.layers = 3;
  config.hidden_size = 32;
  config.mlp_size = 48;
  config.context_length = 96;
  config.attention = attention;
  return config;
}

// Weights large enough that its choices are sharp, as a trained model's are.
inline std::shared_ptr<Decoder> sharp_decoder(const ModelConfig& config, uint64_t seed = 5,
                                              double scale = 12) {
  auto decoder = std::make_shared<Decoder>(config);
  decoder->initialise(seed);
  const torch::NoGradGuard no_gradients;
  for (auto& parameter : decoder->parameters()) {
    if (parameter.dim() == 2) parameter.mul_(scale);
  }
  decoder->eval();
  return decoder;
}

inline SearchOptions options_with(int64_t beam) {
  SearchOptions options;
  options.decode.beam = beam;
  options.decode.max_length_extra = 12;
  options.decode.max_length_ratio = 1;
  options.format = {{1}, {3}, end_token};
  options.forbidden = {0, 1, 3};
  return options;
}

inline std::vector<std::vector<int32_t>> sources(size_t count) {
  std::vector<std::vector<int32_t>> all;
  for (size_t i = 0; i < count; ++i) {
    std::vector<int32_t> source;
    for (size_t j = 0; j < 1 + i * 7 % 23; ++j)
      source.push_back(static_cast<int32_t>(4 + (i * 31 + j * 17) % 56));
    all.push_back(source);
  }
  return all;
}

inline std::vector<std::vector<Hypothesis>> run_search(const Decoder& model, const SearchOptions& options,
                                                       const std::vector<std::vector<int32_t>>& all,
                                                       const std::vector<int32_t>& prefix = {}) {
  std::vector<std::vector<Hypothesis>> results(all.size());
  size_t at = 0;
  Search(model, options)
      .run(
          [&](bool) -> std::optional<SearchRequest> {
            if (at == all.size()) return std::nullopt;
            ++at;
            return SearchRequest{static_cast<int64_t>(at - 1), all[at - 1], prefix};
          },
          [&](int64_t id, std::vector<Hypothesis> found) {
            results[static_cast<size_t>(id)] = std::move(found);
          });
  return results;
}

// Log-probabilities of the next token, from the whole sequence and without a cache.
inline torch::Tensor next_log_probabilities(const Decoder& decoder, const SequenceFormat& format,
                                            const std::vector<int32_t>& source,
                                            const std::vector<int32_t>& target) {
  const torch::NoGradGuard no_gradients;
  Batch batch;
  batch.add(format, source, target);
  const Layout layout = batch_layout(batch, decoder.config());
  return decoder.logits(index_tensor(batch.tokens), layout).select(0, -1).log_softmax(0);
}

inline std::vector<int32_t> greedy_without_cache(const Decoder& decoder, const SearchOptions& options,
                                                 const std::vector<int32_t>& source) {
  std::vector<int32_t> target;
  const size_t most = source.size() + 12;
  while (target.size() < most) {
    auto scores = next_log_probabilities(decoder, options.format, source, target);
    for (const int32_t token : options.forbidden) scores[token] = -INFINITY;
    const auto best = static_cast<int32_t>(scores.argmax().item<int64_t>());
    if (best == end_token) break;
    target.push_back(best);
  }
  return target;
}

// Log-probabilities of the next token after a target; computed once for each.
class NextTokens {
 public:
  NextTokens(const Decoder& decoder, SearchOptions options, std::vector<int32_t> source)
      : decoder_(decoder), options_(std::move(options)), source_(std::move(source)) {}

  const std::vector<double>& after(const std::vector<int32_t>& target) {
    auto& scores = known_[target];
    if (scores.empty()) {
      const auto all =
          next_log_probabilities(decoder_, options_.format, source_, target).to(torch::kFloat64).contiguous();
      scores.assign(all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel());
      for (const int32_t token : options_.forbidden) scores[static_cast<size_t>(token)] = -INFINITY;
    }
    return scores;
  }

 private:
  const Decoder& decoder_;
  SearchOptions options_;
  std::vector<int32_t> source_;
  std::map<std::vector<int32_t>, std::vector<double>> known_;
};

struct PlainSearch {
  std::vector<Hypothesis> ended;   // the best first
  double smallest_gap = INFINITY;  // between the last candidate that was kept and the first that was not
};

// Beam search written as plainly as can be: all beams are asked in every step, and none is dropped before the
// greatest length is reached. With early stopping an ended translation keeps its place in the beam, unless it
// could not be among the `wanted` best even if it had ended with the greatest length.
inline PlainSearch plain_beam_search(NextTokens& next, const DecodeConfig& decode, size_t max_tokens,
                                     int64_t wanted) {
  const auto width = static_cast<size_t>(decode.beam);
  const auto penalty = [&](size_t tokens) {
    return std::pow((5.0 + static_cast<double>(tokens)) / 6, decode.length_penalty);
  };
  PlainSearch result;
  auto& ended = result.ended;
  std::vector<Hypothesis> beams(1);
  for (size_t length = 1; length <= max_tokens && !beams.empty(); ++length) {
    std::vector<Hypothesis> longer;
    for (const Hypothesis& beam : beams) {
      const auto& scores = next.after(beam.tokens);
      for (size_t token = 0; token < scores.size(); ++token) {
        longer.push_back(beam);
        longer.back().tokens.push_back(static_cast<int32_t>(token));
        longer.back().log_probability += scores[token];
      }
    }
    std::erase_if(longer, [](const Hypothesis& one) { return std::isinf(one.log_probability); });
    std::stable_sort(longer.begin(), longer.end(), [](const Hypothesis& a, const Hypothesis& b) {
      return a.log_probability > b.log_probability;
    });
    for (size_t rank = 1; rank < longer.size() && rank <= 2 * width; ++rank)
      result.smallest_gap =
          std::min(result.smallest_gap, longer[rank - 1].log_probability - longer[rank].log_probability);
    beams.clear();
    for (size_t rank = 0; rank < longer.size(); ++rank) {
      if (beams.size() + (decode.early_stopping ? ended.size() : 0) >= width) break;
      Hypothesis& one = longer[rank];
      if (one.tokens.back() != end_token) {
        beams.push_back(one);
      } else if (rank < width) {
        const double possible = one.log_probability / penalty(max_tokens);
        const auto better = std::count_if(ended.begin(), ended.end(),
                                          [&](const Hypothesis& other) { return other.score >= possible; });
        if (better >= wanted) continue;
        one.tokens.pop_back();
        one.score = one.log_probability / penalty(length);
        ended.push_back(one);
      }
    }
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  return result;
}

inline std::vector<Hypothesis> plain_beam_search(const Decoder& decoder, const SearchOptions& options,
                                                 const std::vector<int32_t>& source) {
  NextTokens next(decoder, options, source);
  return plain_beam_search(next, options.decode, source.size() + 12, options.decode.nbest).ended;
}

}  // namespace calque

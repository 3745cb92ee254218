#include "calque/decode/scorer.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "calque/base/error.h"
#include "calque/base/unicode.h"
#include "calque/data/batch.h"
#include "calque/model/batch_layout.h"

namespace calque {
namespace {

constexpr int64_t batch_rows = 2048;  // mutate: memory only

std::vector<float> batch_scores(const Decoder& decoder, const Batch& batch, const Hook* hook) {
  const auto device = decoder.device();
  const torch::Tensor scores =
      decoder
          .label_scores(index_tensor(batch.tokens, device), batch_layout(batch, decoder.config(), device),
                        index_tensor(batch.labels, device), hook)
          .to(torch::kCPU, torch::kFloat32);
  std::vector<float> all(scores.const_data_ptr<float>(), scores.const_data_ptr<float>() + scores.numel());
  if (std::any_of(all.begin(), all.end(), [](float score) { return std::isnan(score); })) refuse_logits();
  return all;
}

}  // namespace

std::vector<std::vector<float>> score_pairs(const Decoder& decoder, const SequenceFormat& format,
                                            const std::vector<TokenPair>& pairs, const Hook* hook) {
  const torch::NoGradGuard no_gradients;
  std::vector<std::vector<float>> all(pairs.size());
  Batch batch;
  std::vector<size_t> members;
  const auto flush = [&] {
    if (members.empty()) return;
    const std::vector<float> scores = batch_scores(decoder, batch, hook);
    auto at = scores.begin();
    for (const size_t member : members) {
      const auto count = static_cast<int64_t>(pairs[member].target.size()) + 1;
      all[member].assign(at, at + count);
      at += count;
    }
    batch = {};
    members.clear();
  };
  for (size_t i = 0; i < pairs.size(); ++i) {
    const int64_t rows = format.rows(static_cast<int64_t>(pairs[i].source.size()),
                                     static_cast<int64_t>(pairs[i].target.size()));
    if (rows > decoder.config().context_length) continue;
    if (batch.rows() + rows > batch_rows) flush();  // mutate: memory only
    batch.add(format, pairs[i].source, pairs[i].target);
    members.push_back(i);
  }
  flush();
  return all;
}

double mean_loss(const Decoder& decoder, const SequenceFormat& format, const std::vector<TokenPair>& pairs,
                 const Hook* hook) {
  double sum = 0, count = 0;
  for (const auto& scores : score_pairs(decoder, format, pairs, hook)) {
    for (const float score : scores) sum -= score;
    count += static_cast<double>(scores.size());
  }
  return count > 0 ? sum / count : std::nan("");
}

double ScoredPair::log_probability() const {
  return std::accumulate(log_probabilities.begin(), log_probabilities.end(), 0.0);
}

nlohmann::json ScoredPair::to_json() const {
  return {{"log_probability", log_probability()},
          {"tokens", tokens},
          {"token_log_probabilities", log_probabilities}};
}

std::string ScoredPair::to_text() const {
  const double sum = log_probability();
  return fmt::format("{:.4f}\t{:.4f}\n", sum, sum / static_cast<double>(log_probabilities.size()));
}

void score_lines(const Translator& translator, PairReader& reader,
                 const std::function<void(const ScoredPair& pair)>& done) {
  constexpr size_t pairs_per_block = 512;  // mutate: memory only
  const Tokenizer& tokenizer = translator.tokenizer();
  std::vector<TokenPair> pairs;
  std::vector<int64_t> lines;
  const auto flush = [&] {
    const auto all = score_pairs(translator.decoder(), translator.format(), pairs);
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (all[i].empty())
        throw UserError(fmt::format("line {}: the pair is longer than the model's context", lines[i]),
                        "split it into sentences");
      ScoredPair scored{{}, all[i]};
      for (const int32_t id : pairs[i].target) scored.tokens.push_back(tokenizer.piece(id));
      scored.tokens.push_back("</s>");
      done(scored);
    }
    pairs.clear();
    lines.clear();
  };
  for (SentencePair pair; reader.next(pair);) {
    pairs.push_back({tokenizer.encode(clean_text(pair.source)), tokenizer.encode(clean_text(pair.target))});
    lines.push_back(pair.line);
    if (pairs.size() == pairs_per_block) flush();  // mutate: memory only
  }
  flush();
}

}  // namespace calque

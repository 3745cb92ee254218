#include "calque/decode/attention_map.h"

#include <fmt/format.h>
#include <torch/types.h>

#include "calque/data/batch.h"
#include "calque/decode/words.h"
#include "calque/model/batch_layout.h"
#include "calque/model/decoder.h"

namespace calque {

std::vector<std::vector<double>> AttentionMap::alignment() const {
  std::vector<double> sums(source.size(), 0.0);
  for (const auto& row : weights) {
    for (size_t s = 0; s < row.size(); ++s) sums[s] += row[s];
  }
  auto relative = weights;
  for (auto& row : relative) {
    for (size_t s = 0; s < row.size(); ++s)
      row[s] = sums[s] > 0 ? row[s] * static_cast<double>(weights.size()) / sums[s] : 0;
  }
  return relative;
}

AttentionMap map_attention(const Decoder& decoder, const Tokenizer& tokenizer, const SequenceFormat& format,
                           const std::vector<int32_t>& source, const std::vector<int32_t>& target,
                           const AttentionHead& which) {
  const torch::NoGradGuard no_gradients;
  Batch batch;
  batch.add(format, source, target);
  const auto device = decoder.device();
  const Layout layout = batch_layout(batch, decoder.config(), device);
  const auto queries = static_cast<int64_t>(target.size()) + 1;
  torch::Tensor sum;  // [queries, rows]
  const Hook hook = [&](const std::string& name, const torch::Tensor& value) {
    if (!name.ends_with("attention.weights.0")) return;
    // The last layer has the queries alone, the others all rows, of which the queries are the last.
    if (which.layer && !name.starts_with(fmt::format("blocks.{}.", *which.layer))) return;
    const auto heads = which.head ? value[*which.head] : value.mean(0);  // [queries, rows]
    const auto mean = heads.slice(0, value.size(1) - queries);
    sum = sum.defined() ? sum + mean : mean;
  };
  decoder.hidden(index_tensor(batch.tokens, device), layout, &hook);
  const torch::Tensor weights = sum.to(torch::kCPU, torch::kFloat64).contiguous();

  const PieceWords source_words = words_of(tokenizer, source);
  PieceWords target_words = words_of(tokenizer, target);
  target_words.word_of.push_back(target_words.words.size());
  target_words.words.emplace_back("(end)");
  AttentionMap map{source_words.words, target_words.words, {}};
  map.weights.assign(map.target.size(), std::vector<double>(map.source.size(), 0.0));
  const auto first = static_cast<int64_t>(format.begin.size());
  for (size_t t = 0; t < target_words.word_of.size(); ++t) {
    for (size_t s = 0; s < source.size(); ++s) {
      map.weights[target_words.word_of[t]][source_words.word_of[s]] +=
          weights[static_cast<int64_t>(t)][first + static_cast<int64_t>(s)].item<double>();
    }
  }
  for (auto& row : map.weights) {
    double total = 0;
    for (const double weight : row) total += weight;
    for (double& weight : row) weight = total > 0 ? weight / total : 0;
  }
  return map;
}

}  // namespace calque

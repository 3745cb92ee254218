#include "calque/decode/scorer.h"

#include <torch/types.h>

#include "calque/data/batch.h"
#include "calque/model/decoder.h"

namespace calque {
namespace {

// log p of each label of a batch.
std::vector<float> label_scores(const Decoder& decoder, const Batch& batch) {
  const auto device = decoder.embedding->weight.device();
  const bool prefix = decoder.config().attention == AttentionKind::prefix;
  const torch::Tensor logits =
      decoder.logits(index_tensor(batch.tokens, device), make_layout(batch, prefix, device));
  const torch::Tensor labels = index_tensor(batch.labels, device).unsqueeze(1);
  const torch::Tensor scores =
      (logits.gather(1, labels).squeeze(1) - logits.logsumexp(1)).to(torch::kCPU, torch::kFloat32);
  return {scores.const_data_ptr<float>(), scores.const_data_ptr<float>() + scores.numel()};
}

}  // namespace

std::vector<std::vector<float>> score_pairs(const Decoder& decoder, const SequenceFormat& format,
                                            const std::vector<TokenPair>& pairs, int64_t batch_rows) {
  const torch::NoGradGuard no_gradients;
  std::vector<std::vector<float>> all(pairs.size());
  Batch batch;
  std::vector<size_t> members;
  const auto flush = [&] {
    if (members.empty()) return;
    const std::vector<float> scores = label_scores(decoder, batch);
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
    if (rows > decoder.config().max_positions) continue;
    if (batch.rows() + rows > batch_rows) flush();
    batch.add(format, pairs[i].source, pairs[i].target);
    members.push_back(i);
  }
  flush();
  return all;
}

}  // namespace calque

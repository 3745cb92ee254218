#include "calque/decode/scorer.h"

#include <torch/types.h>

#include <numeric>

#include "calque/data/batch.h"
#include "calque/model/packed_decoder.h"

namespace calque {
namespace {

// A pass that goes on from nothing: every pair sees its own rows of the layer at hand, so that all layers can
// do with one cache.
torch::Tensor packed_logits(const SearchModel& model, const Batch& batch, const Layout& layout) {
  const ModelConfig& config = model.decoder.config();
  const std::vector<torch::Tensor> layers(
      static_cast<size_t>(config.layers),
      torch::empty({layout.rows(), 2 * config.key_value_head_count() * config.width_of_head()}));
  CachePass pass{{}, layers};
  pass.rows.slots.resize(static_cast<size_t>(layout.rows()));
  std::iota(pass.rows.slots.begin(), pass.rows.slots.end(), 0);
  pass.rows.seen = pass.rows.slots;
  pass.rows.seen_offsets = layout.offsets;
  for (size_t pair = 0; pair < layout.prefix_ends.size(); ++pair)
    pass.rows.prefixes.push_back(layout.prefix_ends[pair] - layout.offsets[pair]);
  return model.packed->logits(index_tensor(batch.tokens), layout, pass);
}

// log p of each label of a batch.
std::vector<float> label_scores(const SearchModel& model, const Batch& batch) {
  const auto device = model.decoder.embedding->weight.device();
  const bool prefix = model.decoder.config().attention == AttentionKind::prefix;
  const Layout layout = make_layout(batch, prefix, device);
  const torch::Tensor logits = model.packed != nullptr
                                   ? packed_logits(model, batch, layout)
                                   : model.decoder.logits(index_tensor(batch.tokens, device), layout);
  const torch::Tensor labels = index_tensor(batch.labels, device).unsqueeze(1);
  const torch::Tensor scores =
      (logits.gather(1, labels).squeeze(1) - logits.logsumexp(1)).to(torch::kCPU, torch::kFloat32);
  return {scores.const_data_ptr<float>(), scores.const_data_ptr<float>() + scores.numel()};
}

}  // namespace

std::vector<std::vector<float>> score_pairs(const SearchModel& model, const SequenceFormat& format,
                                            const std::vector<TokenPair>& pairs, int64_t batch_rows) {
  const torch::NoGradGuard no_gradients;
  std::vector<std::vector<float>> all(pairs.size());
  Batch batch;
  std::vector<size_t> members;
  const auto flush = [&] {
    if (members.empty()) return;
    const std::vector<float> scores = label_scores(model, batch);
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
    if (rows > model.decoder.config().max_positions) continue;
    if (batch.rows() + rows > batch_rows) flush();
    batch.add(format, pairs[i].source, pairs[i].target);
    members.push_back(i);
  }
  flush();
  return all;
}

}  // namespace calque

#include "calque/data/batch.h"

namespace calque {

void Batch::add(const SequenceFormat& format, std::span<const int32_t> source,
                std::span<const int32_t> target) {
  if (offsets.empty()) offsets.push_back(0);
  const int64_t first = rows();
  tokens.insert(tokens.end(), format.begin.begin(), format.begin.end());
  tokens.insert(tokens.end(), source.begin(), source.end());
  tokens.insert(tokens.end(), format.separator.begin(), format.separator.end());
  target_starts.push_back(rows());
  for (const int32_t token : target) {
    loss_rows.push_back(rows() - 1);
    labels.push_back(token);
    tokens.push_back(token);
  }
  loss_rows.push_back(rows() - 1);
  labels.push_back(format.end);
  for (int64_t row = first; row < rows(); ++row) positions.push_back(row - first);
  offsets.push_back(rows());
}

std::vector<Batch> split_batch(const Batch& batch, int64_t rows) {
  std::vector<Batch> parts;
  size_t label = 0;
  for (int64_t pair = 0; pair < batch.pairs(); ++pair) {
    const int64_t begin = batch.offsets[pair], end = batch.offsets[pair + 1];
    if (parts.empty() || parts.back().rows() + end - begin > rows) {
      parts.emplace_back().offsets = {0};
      parts.back().place = batch.place;
    }
    Batch& part = parts.back();
    const int64_t shift = part.rows() - begin;
    part.tokens.insert(part.tokens.end(), batch.tokens.begin() + begin, batch.tokens.begin() + end);
    part.positions.insert(part.positions.end(), batch.positions.begin() + begin,
                          batch.positions.begin() + end);
    part.offsets.push_back(end + shift);
    part.target_starts.push_back(batch.target_starts[pair] + shift);
    for (; label < batch.labels.size() && batch.loss_rows[label] < end; ++label) {
      part.loss_rows.push_back(batch.loss_rows[label] + shift);
      part.labels.push_back(batch.labels[label]);
    }
  }
  return parts;
}

Batch make_batch(const TokenStore& store, const SequenceFormat& format, std::span<const int64_t> pairs) {
  Batch batch;
  for (const int64_t pair : pairs) batch.add(format, store.source(pair), store.target(pair));
  return batch;
}

}  // namespace calque

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

Batch make_batch(const TokenStore& store, const SequenceFormat& format, std::span<const int64_t> pairs) {
  Batch batch;
  for (const int64_t pair : pairs) batch.add(format, store.source(pair), store.target(pair));
  return batch;
}

}  // namespace calque

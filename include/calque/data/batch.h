// Batch: sentence pairs as one flat row of tokens, one after another, none of them padding.
//
//   pair 0                         pair 1
//   <s> s s s <sep> t t            <s> s s <sep> t t t
//   ^offsets[0]     ^target_starts[0]              ^target_starts[1]
//             labels: t t </s>             labels: t t t </s>      (at loss_rows: <sep> and the target's own
//             rows)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calque/data/sequence.h"
#include "calque/data/token_store.h"

namespace calque {

struct Batch {
  std::vector<int64_t> tokens;         // [rows] token ids
  std::vector<int64_t> positions;      // [rows] 0, 1, 2 … within each pair
  std::vector<int64_t> offsets;        // [pairs + 1] where each pair begins; the last is the number of rows
  std::vector<int64_t> target_starts;  // [pairs] the first row that is not source: what a prefix mask needs
  std::vector<int64_t> loss_rows;      // [labels] rows whose next token is learnt
  std::vector<int64_t> labels;         // [labels] that next token

  struct Place {
    int64_t epoch = 0;
    int64_t step = 0;  // of the epoch's `steps`
    int64_t steps = 0;
  } place;  // where in the order of training it stands

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  int64_t pairs() const { return static_cast<int64_t>(target_starts.size()); }

  // Appends a pair. For plain text the source is empty and every row carries loss.
  void add(const SequenceFormat& format, std::span<const int32_t> source, std::span<const int32_t> target);
};

// The same pairs in parts of at most `rows` rows (a pair that is longer stands alone), in order.
std::vector<Batch> split_batch(const Batch& batch, int64_t rows);

Batch make_batch(const TokenStore& store, const SequenceFormat& format, std::span<const int64_t> pairs);

}  // namespace calque

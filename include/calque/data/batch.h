// Batch: sentence pairs packed one after another into one sequence of tokens (rows), without padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calque/data/sequence.h"
#include "calque/data/token_store.h"

namespace calque {

// Two pairs, with source tokens s and target tokens t:
//
//   pair 0                         pair 1
//   <s> s s s <sep> t t            <s> s s <sep> t t t
//   ^offsets[0]     ^target_starts[0]              ^target_starts[1]
//             labels: t t </s>             labels: t t t </s>
//
// The labels belong to loss_rows: the row of <sep> and the rows of the target.
struct Batch {
  std::vector<int64_t> tokens;     // [rows] token ids
  std::vector<int64_t> positions;  // [rows] 0, 1, 2 … within each pair
  std::vector<int64_t> offsets;    // [pairs + 1] first row of each pair; the last entry is the number of rows
  std::vector<int64_t> target_starts;  // [pairs] first row of each target, for the prefix mask
  std::vector<int64_t> loss_rows;      // [labels] rows that have a label
  std::vector<int64_t> labels;         // [labels] the next token, which the row must predict

  struct Place {
    int64_t epoch = 0;
    int64_t step = 0;   // within the epoch
    int64_t steps = 0;  // per epoch
  } place;              // position in the training order

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  int64_t pairs() const { return static_cast<int64_t>(target_starts.size()); }

  // Appends a pair. For plain text the source is empty and every row has a label.
  void add(const SequenceFormat& format, std::span<const int32_t> source, std::span<const int32_t> target);
};

// Splits a batch into parts of at most `rows` rows, in order. A longer pair becomes a part of its own.
std::vector<Batch> split_batch(const Batch& batch, int64_t rows);

Batch make_batch(const TokenStore& store, const SequenceFormat& format, std::span<const int64_t> pairs);

}  // namespace calque

// BatchSampler: decides which pairs form which batch. The result is a pure function of (seed, epoch, step),
// so that any step is computed directly and a resumed run does not have to repeat earlier steps.
#pragma once

#include <cstdint>
#include <vector>

#include "calque/data/sequence.h"
#include "calque/data/token_store.h"

namespace calque {

struct BatchSamplerOptions {
  int64_t batch_tokens = 4096;  // maximum number of rows in a batch
  uint64_t seed = 1;
  std::vector<double> weights;  // one per part of the corpus; empty: all 1
  bool shuffle = true;          // false: sorted by length, shortest first, for validation
};

// A batch holds pairs of similar length, because the store is sorted by length. Every epoch shuffles the
// pairs of each length and the order of the batches. Batch boundaries depend only on the number of pairs per
// length.
class BatchSampler {
 public:
  // Keeps a reference to the store. Throws a UserError if a pair is longer than batch_tokens.
  BatchSampler(const TokenStore& store, SequenceFormat format, BatchSamplerOptions options);

  // Steps per epoch.
  int64_t steps(int64_t epoch);

  // The pairs of one batch, as indices into the store; empty past the end of the epoch.
  std::vector<int64_t> pairs(int64_t epoch, int64_t step);

  const SequenceFormat& format() const { return format_; }
  const TokenStore& store() const { return store_; }

 private:
  // Consecutive draws from one group: `per_batch` pairs for each batch, starting with `first_batch`.
  struct Segment {
    int64_t group;
    int64_t first_batch;
    int64_t first_draw;  // index within the group's draws of this epoch
    int64_t draws;
    int64_t per_batch;
  };
  void plan(int64_t epoch);
  int64_t draws_before(const LengthGroup& group, int64_t epoch) const;
  int64_t drawn_pair(int64_t group_index, int64_t draw, int64_t epoch) const;

  const TokenStore& store_;
  SequenceFormat format_;
  BatchSamplerOptions options_;
  int64_t planned_epoch_ = -1;
  int64_t batches_ = 0;            // mutate: plan() sets it
  std::vector<Segment> segments_;  // sorted by first_batch
};

// The share of one of `ranks` processes in a batch. The pairs of a batch are sorted by length and dealt out
// in turns, each turn in the opposite direction, so that all shares have about as many tokens.
std::vector<int64_t> share_of(const std::vector<int64_t>& pairs, int rank, int ranks);

}  // namespace calque

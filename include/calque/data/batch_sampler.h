// BatchSampler: which pairs make which batch. The order is a pure function of (seed, epoch, position):
// nothing is remembered, so any position is reached at once, and a resumed run or another rank needs no
// replay.
//
// Pairs of like length stand together, since the store sorts them so. Every epoch deals the pairs of one
// length anew and shuffles the order of the batches; batch boundaries follow from the counts of pairs a
// length alone.
#pragma once

#include <cstdint>
#include <vector>

#include "calque/data/sequence.h"
#include "calque/data/token_store.h"

namespace calque {

struct BatchSamplerOptions {
  int64_t batch_tokens = 4096;  // rows in a batch at most
  uint64_t seed = 1;
  int64_t rank = 0;  // this process among `ranks`: step s of rank r is batch s·ranks + r of the epoch
  int64_t ranks = 1;
  std::vector<double> weights;  // by part of the corpus; empty: all 1
  bool shuffle = true;          // false: by length, the shortest first, as validation wants it
};

class BatchSampler {
 public:
  // Keeps a reference to the store. A pair longer than batch_tokens is a UserError.
  BatchSampler(const TokenStore& store, SequenceFormat format, BatchSamplerOptions options);

  // Steps in an epoch, the same for every rank; the last ones of a rank may be empty.
  int64_t steps(int64_t epoch);

  // The pairs of one batch, as indices into the store; empty past the end of the epoch.
  std::vector<int64_t> pairs(int64_t epoch, int64_t step);

  const SequenceFormat& format() const { return format_; }
  const TokenStore& store() const { return store_; }

 private:
  // A run of pairs that are dealt, in order, from one group: `per_batch` to each batch from `first_batch` on.
  struct Segment {
    int64_t group;
    int64_t first_batch;
    int64_t first_draw;  // within the group's draws of this epoch
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
  int64_t batches_ = 0;
  std::vector<Segment> segments_;  // by first_batch
};

}  // namespace calque

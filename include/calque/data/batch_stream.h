// BatchStream: the endless sequence of training batches, or of a process's share of each, starting at any
// step. With a sampling tokenizer (BPE-dropout), every epoch is tokenised again with its own seed.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "calque/data/batch.h"
#include "calque/data/batch_sampler.h"
#include "calque/data/data_cache.h"
#include "calque/data/data_config.h"
#include "calque/data/tokenizer.h"

namespace calque {

struct BatchStreamOptions {
  Corpus corpus;
  int64_t max_tokens = 256;
  int64_t batch_tokens = 4096;
  std::string prompt;  // text around source and target; see pair_format()
  double sampling = 0;
  uint64_t seed = 1;
  int rank = 0;  // of the processes that share out each batch
  int ranks = 1;
  int64_t shards = 1;                  // above 1: a process opens every Nth shard, and draws from these alone
  std::filesystem::path sampled = {};  // token file with a sampling tokenizer; empty: in the cache
};

// The numbers of the shards that a process opens: every Nth, beginning with its rank.
std::vector<int64_t> shards_of_rank(int64_t shards, int64_t rank, int64_t ranks);

class BatchStream {
 public:
  // Starts at step `step` of `epoch`. Keeps a reference to the cache.
  BatchStream(BatchStreamOptions options, Tokenizer tokenizer, DataCache& cache, int64_t epoch, int64_t step);

  // With shards, an epoch is as long as that of the largest shard, which another process may have: the
  // largest epoch_steps() of all processes. Smaller shards begin their next epoch earlier.
  void set_epoch_steps(int64_t steps);

  Batch next();

  // The following describe the current epoch, of what this process has opened.
  int64_t pairs() const;
  int64_t skipped_long() const;
  int64_t skipped_empty() const;
  double epoch_rows() const;  // includes the weights of the corpus parts
  int64_t epoch_steps() const;
  const TokenStore& store() const { return *shards_.front().store; }  // the first shard's

 private:
  struct Shard {
    std::unique_ptr<TokenStore> store;
    std::unique_ptr<BatchSampler> sampler;
    int64_t epoch = 0, step = 0;  // of its next batch
  };
  void open_epoch();
  std::vector<TokenStore> open_stores() const;
  Shard open_shard(TokenStore store, int64_t number) const;
  void seek();
  Batch next_share() const;  // of a batch that all processes know
  Batch next_of_shards();

  BatchStreamOptions options_;
  Tokenizer tokenizer_;
  DataCache& cache_;
  int64_t epoch_;
  int64_t step_;
  std::vector<Shard> shards_;       // this process's; a single one holds everything
  int64_t shared_epoch_steps_ = 0;  // with several shards
};

}  // namespace calque

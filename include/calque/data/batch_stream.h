// BatchStream: the endless sequence of training batches, or of a process's share of each, starting at any
// step. With a sampling tokenizer (BPE-dropout), every epoch is tokenised again with its own seed.
#pragma once

#include <filesystem>
#include <memory>

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
  std::filesystem::path sampled = {};  // token file with a sampling tokenizer; empty: in the cache
};

class BatchStream {
 public:
  // Starts at step `step` of `epoch`. Keeps a reference to the cache.
  BatchStream(BatchStreamOptions options, Tokenizer tokenizer, DataCache& cache, int64_t epoch, int64_t step);

  Batch next();

  // The following describe the current epoch.
  int64_t pairs() const { return store_->pairs(); }
  double epoch_rows() const;  // includes the weights of the corpus parts
  int64_t epoch_steps() const { return sampler_->steps(epoch_); }
  const TokenStore& store() const { return *store_; }

 private:
  void open_epoch();

  BatchStreamOptions options_;
  Tokenizer tokenizer_;
  DataCache& cache_;
  int64_t epoch_;
  int64_t step_;
  std::unique_ptr<TokenStore> store_;
  std::unique_ptr<BatchSampler> sampler_;
};

}  // namespace calque

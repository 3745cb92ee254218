// BatchStream: the batches of training in their order, endlessly, from any place on. With a sampling
// tokenizer every epoch is tokenised anew, by a seed of its own.
#pragma once

#include <filesystem>
#include <memory>

#include "calque/data/batch.h"
#include "calque/data/batch_sampler.h"
#include "calque/data/data_config.h"
#include "calque/data/tokenizer.h"

namespace calque {

struct BatchStreamOptions {
  Corpus corpus;
  int64_t max_tokens = 256;
  int64_t batch_tokens = 4096;
  std::string prompt;  // around source and target; see pair_format()
  double sampling = 0;
  uint64_t seed = 1;
  std::filesystem::path cache;
  std::filesystem::path
      sampled;  // where a sampling tokenizer's epochs go, one replacing the other; empty: the cache
};

class BatchStream {
 public:
  // Begins with step `step` of `epoch`.
  BatchStream(BatchStreamOptions options, Tokenizer tokenizer, int64_t epoch, int64_t step);

  Batch next();

  // Of the epoch that the stream is in.
  int64_t pairs() const { return store_->pairs(); }
  int64_t epoch_rows() const;
  int64_t epoch_steps() { return sampler_->steps(epoch_); }
  const TokenStore& store() const { return *store_; }

 private:
  void open_epoch();

  BatchStreamOptions options_;
  Tokenizer tokenizer_;
  int64_t epoch_;
  int64_t step_;
  std::unique_ptr<TokenStore> store_;
  std::unique_ptr<BatchSampler> sampler_;
};

}  // namespace calque

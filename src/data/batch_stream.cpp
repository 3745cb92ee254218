#include "calque/data/batch_stream.h"

#include "calque/base/hash.h"

namespace calque {

BatchStream::BatchStream(BatchStreamOptions options, Tokenizer tokenizer, DataCache& cache, int64_t epoch,
                         int64_t step)
    : options_(std::move(options)),
      tokenizer_(std::move(tokenizer)),
      cache_(cache),
      epoch_(epoch),
      step_(step) {
  open_epoch();
}

void BatchStream::open_epoch() {
  if (store_ && options_.sampling == 0) return;
  TokenStoreOptions store_options;
  store_options.max_tokens = options_.max_tokens;
  store_options.sampling = options_.sampling;
  store_options.sampling_seed = mix(options_.seed, static_cast<uint64_t>(epoch_));
  sampler_.reset();
  // All sampled epochs share one file, which each epoch overwrites, so that they do not fill the cache.
  const auto path = options_.sampled.empty() ? cache_.folder() / "sampled.tokens" : options_.sampled;
  store_ = std::make_unique<TokenStore>(
      options_.sampling > 0 ? cache_.tokens_at(path, options_.corpus, tokenizer_, store_options)
                            : cache_.tokens(options_.corpus, tokenizer_, store_options));
  BatchSamplerOptions sampler_options;
  sampler_options.batch_tokens = options_.batch_tokens;
  sampler_options.seed = options_.seed;
  for (const CorpusPart& part : options_.corpus) sampler_options.weights.push_back(part.weight);
  sampler_ = std::make_unique<BatchSampler>(
      *store_, store_->is_text() ? text_format(tokenizer_) : pair_format(tokenizer_, options_.prompt),
      sampler_options);
}

double BatchStream::epoch_rows() const {
  double rows = 0;
  for (const LengthGroup& group : store_->groups()) {
    rows += static_cast<double>(sampler_->format().rows(group.tokens, 0)) * static_cast<double>(group.count) *
            options_.corpus[group.part].weight;
  }
  return rows;
}

Batch BatchStream::next() {
  while (step_ >= sampler_->steps(epoch_)) {
    step_ = 0;
    ++epoch_;
    open_epoch();
  }
  const auto share = share_of(sampler_->pairs(epoch_, step_), options_.rank, options_.ranks);
  Batch batch = make_batch(*store_, sampler_->format(), share);
  batch.place = {epoch_, step_, sampler_->steps(epoch_)};
  ++step_;
  return batch;
}

}  // namespace calque

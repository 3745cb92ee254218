#include "calque/data/batch_stream.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "calque/base/hash.h"

namespace calque {

std::vector<int64_t> shards_of_rank(int64_t shards, int64_t rank, int64_t ranks) {
  std::vector<int64_t> own;
  for (int64_t shard = rank; shard < shards; shard += ranks) own.push_back(shard);
  return own;
}

BatchStream::BatchStream(BatchStreamOptions options, Tokenizer tokenizer, DataCache& cache, int64_t epoch,
                         int64_t step)
    : options_(std::move(options)),
      tokenizer_(std::move(tokenizer)),
      cache_(cache),
      epoch_(epoch),
      step_(step) {
  open_epoch();
}

std::vector<TokenStore> BatchStream::open_stores() const {
  TokenStoreOptions store_options;
  store_options.max_tokens = options_.max_tokens;
  store_options.sampling = options_.sampling;
  store_options.sampling_seed = mix(options_.seed, static_cast<uint64_t>(epoch_));
  store_options.shards = options_.shards;
  std::vector<TokenStore> stores;
  if (options_.sampling > 0) {
    // All sampled epochs share one file, which each epoch overwrites, so that they do not fill the cache.
    const auto path = options_.sampled.empty() ? cache_.folder() / "sampled.tokens" : options_.sampled;
    stores.push_back(cache_.tokens_at(path, options_.corpus, tokenizer_, store_options));
    return stores;
  }
  const auto own = options_.shards > 1 ? shards_of_rank(options_.shards, options_.rank, options_.ranks)
                                       : std::vector<int64_t>{0};
  return cache_.token_shards(options_.corpus, tokenizer_, store_options, own);
}
BatchStream::Shard BatchStream::open_shard(TokenStore store, int64_t number) const {
  Shard shard;
  shard.store = std::make_unique<TokenStore>(std::move(store));
  BatchSamplerOptions sampler_options;
  sampler_options.batch_tokens = options_.batch_tokens / options_.shards;
  sampler_options.seed = number == 0 ? options_.seed : mix(options_.seed, static_cast<uint64_t>(number));
  for (const CorpusPart& part : options_.corpus) sampler_options.weights.push_back(part.weight);
  shard.sampler = std::make_unique<BatchSampler>(
      *shard.store,
      shard.store->is_text() ? text_format(tokenizer_) : pair_format(tokenizer_, options_.prompt),
      sampler_options);
  return shard;
}

void BatchStream::open_epoch() {
  if (!shards_.empty() && options_.sampling == 0) return;
  shards_.clear();
  int64_t number = options_.shards > 1 ? options_.rank : 0;
  for (TokenStore& store : open_stores()) {
    shards_.push_back(open_shard(std::move(store), number));
    number += options_.ranks;
  }
  if (options_.shards > 1) set_epoch_steps(epoch_steps());
}

void BatchStream::set_epoch_steps(int64_t steps) {
  if (options_.shards == 1) return;
  shared_epoch_steps_ = steps;
  seek();
}

// Where each shard is after as many steps as the run has made.
void BatchStream::seek() {
  for (Shard& shard : shards_) {
    shard.epoch = 0;
    shard.step = epoch_ * shared_epoch_steps_ + step_;
    while (shard.step >= shard.sampler->steps(shard.epoch)) shard.step -= shard.sampler->steps(shard.epoch++);
  }
}

int64_t BatchStream::epoch_steps() const {
  int64_t most = 0;
  for (const Shard& shard : shards_) most = std::max(most, shard.sampler->steps(epoch_));
  return most;
}

double BatchStream::epoch_rows() const {
  double rows = 0;
  for (const Shard& shard : shards_) {
    for (const LengthGroup& group : shard.store->groups()) {
      rows += static_cast<double>(shard.sampler->format().rows(group.tokens, 0)) *
              static_cast<double>(group.count) * options_.corpus[group.part].weight;
    }
  }
  return rows;
}

int64_t BatchStream::pairs() const {
  return std::accumulate(shards_.begin(), shards_.end(), int64_t{0},
                         [](int64_t sum, const Shard& shard) { return sum + shard.store->pairs(); });
}

int64_t BatchStream::skipped_long() const {
  return std::accumulate(shards_.begin(), shards_.end(), int64_t{0},
                         [](int64_t sum, const Shard& shard) { return sum + shard.store->skipped_long(); });
}

int64_t BatchStream::skipped_empty() const {
  return std::accumulate(shards_.begin(), shards_.end(), int64_t{0},
                         [](int64_t sum, const Shard& shard) { return sum + shard.store->skipped_empty(); });
}

Batch BatchStream::next() {
  const auto steps = [&] { return options_.shards > 1 ? shared_epoch_steps_ : epoch_steps(); };
  while (step_ >= steps()) {
    step_ = 0;
    ++epoch_;
    open_epoch();
  }
  Batch batch = options_.shards > 1 ? next_of_shards() : next_share();
  batch.place = {epoch_, step_, steps()};
  ++step_;
  return batch;
}

Batch BatchStream::next_share() const {
  const Shard& all = shards_.front();
  return make_batch(*all.store, all.sampler->format(),
                    share_of(all.sampler->pairs(epoch_, step_), options_.rank, options_.ranks));
}

Batch BatchStream::next_of_shards() {
  Batch batch;
  for (Shard& shard : shards_) {
    for (const int64_t pair : shard.sampler->pairs(shard.epoch, shard.step))
      batch.add(shard.sampler->format(), shard.store->source(pair), shard.store->target(pair));
    if (++shard.step == shard.sampler->steps(shard.epoch)) {
      ++shard.epoch;
      shard.step = 0;
    }
  }
  return batch;
}

}  // namespace calque

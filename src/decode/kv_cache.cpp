#include "calque/decode/kv_cache.h"

#include <torch/types.h>

namespace calque {

KvCache::KvCache(const Decoder& decoder)
    : row_size_(2 * decoder.config().kv_head_count() * decoder.config().head_size_or_default()),
      options_(decoder.norm->weight.options().requires_grad(false)),
      layers_(decoder.blocks.size()) {}

int32_t KvCache::take() {
  if (free_.empty()) grow();
  const int32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void KvCache::give_back(std::span<const int32_t> slots) {
  free_.insert(free_.end(), slots.begin(), slots.end());
}

void KvCache::grow() {
  const int64_t larger = std::max<int64_t>(512, capacity_ * 2);
  for (torch::Tensor& layer : layers_) {
    torch::Tensor grown = torch::empty({larger, row_size_}, options_);
    if (layer.defined()) grown.slice(0, 0, capacity_).copy_(layer);
    layer = grown;
  }
  for (int64_t slot = larger; slot-- > capacity_;) free_.push_back(static_cast<int32_t>(slot));
  capacity_ = larger;
}

}  // namespace calque

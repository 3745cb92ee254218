// KvCache: keys and values of every layer for the tokens of sentences under translation. A token's row may
// lie in any slot, so that beams share rows and change order without anything being moved.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "calque/model/decoder.h"

namespace calque {

class KvCache {
 public:
  explicit KvCache(const Decoder& decoder);

  int32_t take();  // a free slot; the cache grows when there is none
  void give_back(std::span<const int32_t> slots);

  const std::vector<torch::Tensor>& layers() const { return layers_; }  // [capacity, keys | values] each
  int64_t capacity() const { return capacity_; }
  int64_t used() const { return capacity_ - static_cast<int64_t>(free_.size()); }

 private:
  void grow();

  int64_t row_size_;
  torch::TensorOptions options_;
  int64_t capacity_ = 0;
  std::vector<torch::Tensor> layers_;
  std::vector<int32_t> free_;
};

}  // namespace calque

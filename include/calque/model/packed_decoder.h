// PackedDecoder: a decoder's weights laid out for translating on the CPU, and the pass over them. It computes
// what Decoder::logits computes with a cache, without gradients and without a framework between the steps;
// each thread takes its share of the pairs through all layers, and waits for nobody on the way.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "calque/kernels/packed_matrix.h"
#include "calque/model/decoder.h"

namespace calque {

class PackedDecoder {
 public:
  // Adapters are merged. Later changes of the decoder's weights are not seen.
  PackedDecoder(const Decoder& decoder, Packing packing);
  ~PackedDecoder();

  // As Decoder::logits; a pair's logits are the same to the bit whatever pairs stand beside it.
  torch::Tensor logits(const torch::Tensor& tokens, const Layout& layout, const CachePass& cache) const;

  int64_t bytes() const;  // of the packed weights

 private:
  struct PackedNorm;
  struct PackedBlock;
  struct Share;
  void run(const Share& share, const torch::Tensor& tokens, const Layout& layout, const CachePass& cache,
           float* logits) const;

  ModelConfig config_;
  torch::Tensor embedding_, positions_;  // [vocabulary, width], [max_positions, width] or undefined
  std::vector<PackedBlock> blocks_;
  std::unique_ptr<PackedNorm> norm_;
  PackedMatrix output_;
};

}  // namespace calque

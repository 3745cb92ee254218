// Low-rank adapters (LoRA; Hu et al., 2021) on the matrices of a decoder's blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "calque/model/decoder.h"

namespace calque {

struct AdapterConfig {
  int64_t rank = 16;
  double scale = 2;
  double dropout = 0;
  std::vector<std::string> target_modules;  // of qkv, output, up, down
  int64_t first_layer = 0;                  // no adapters, and no gradients, in the layers below it
};

// Freezes everything but the adapters; the blocks' matrices are stored in `base_precision`.
void add_adapters(Decoder& decoder, const AdapterConfig& config, uint64_t seed,
                  WeightPrecision base_precision);

// Merges the adapters into the weights: a plain decoder with the same output.
std::shared_ptr<Decoder> merge_adapters(const Decoder& decoder);

// Packs the adapters by themselves, on a decoder whose packed weights are shared.
void pack_adapters(Decoder& decoder);

bool has_adapters(const Decoder& decoder);

}  // namespace calque

// Low-rank adapters (Hu et al., 2021) on the matrices of a decoder's blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "calque/model/decoder.h"

namespace calque {

struct AdapterShape {
  int64_t rank = 16;
  double scale = 2;
  double dropout = 0;
  std::vector<std::string> matrices;  // of qkv, output, up, down
  int64_t first_layer = 0;            // layers below it have none, and no gradient passes them
};

// Everything but the adapters is frozen from here on, the blocks' matrices in the precision `base`.
void add_adapters(Decoder& decoder, const AdapterShape& shape, uint64_t seed, Packing base);

// A plain decoder with the same output: the adapters added into the matrices.
std::shared_ptr<Decoder> merge_adapters(const Decoder& decoder);

bool has_adapters(const Decoder& decoder);

}  // namespace calque

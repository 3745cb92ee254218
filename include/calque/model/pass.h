// Pass: what a forward pass is told besides its input: where the pairs lie, whether it goes on from earlier
// passes, and who wants to look at what is between.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>

#include "calque/kernels/cached_attention.h"
#include "calque/kernels/layout.h"

namespace calque {

// Called with the name and value of every intermediate tensor, such as «blocks.2.attention.q».
using Tap = std::function<void(const std::string& name, const torch::Tensor& value)>;

// A pass that goes on from earlier ones: what each pair sees of them, and each layer's keys and values.
struct CachePass {
  CacheRows rows;
  const std::vector<torch::Tensor>& layers;  // [capacity, keys | values] for each layer
};

struct Pass {
  const Layout& layout;
  const Tap* tap = nullptr;
  const CachePass* cache = nullptr;
  int64_t layer = 0;       // which block this is
  std::string scope = {};  // names of enclosing parts, with a dot behind each

  const torch::Tensor& cache_of_layer() const { return cache->layers[static_cast<size_t>(layer)]; }
  // Shows a tensor to the tap, if there is one, and passes it on.
  const torch::Tensor& show(const char* name, const torch::Tensor& value) const {
    if (tap != nullptr) (*tap)(scope + name, value);
    return value;
  }
  // The pass as a part inside this one sees it.
  Pass inside(const std::string& part) const {
    return {layout, tap, cache, layer, tap != nullptr ? scope + part + "." : scope};
  }
};

}  // namespace calque

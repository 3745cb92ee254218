// ForwardContext: what a forward pass needs besides its input: the layout of the batch, the key-value cache
// where it continues earlier passes, and a hook that sees the intermediate tensors.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "calque/kernels/cached_attention.h"
#include "calque/kernels/layout.h"

namespace calque {

// Called with the name and value of intermediate tensors, such as "blocks.2.attention.heads". Without
// gradients it may also change the value in place, for example to switch a head off.
using Hook = std::function<void(const std::string& name, const torch::Tensor& value)>;

// The cache of a pass that continues earlier ones.
struct CacheView {
  CacheIndex index;
  const std::vector<torch::Tensor>& layers;  // [capacity, keys | values] per layer
};

struct ForwardContext {
  const Layout& layout;
  const Hook* hook = nullptr;
  const CacheView* cache = nullptr;
  int64_t layer = 0;                    // index of the block
  std::string scope = {};               // names of the enclosing modules, each followed by a dot
  const PaddedPairs* padded = nullptr;  // of the layout; null where the fast kernels need none

  const torch::Tensor& layer_cache() const { return cache->layers[static_cast<size_t>(layer)]; }
  // Passes a tensor on, after the hook has seen it.
  const torch::Tensor& show(const char* name, const torch::Tensor& value) const {
    if (hook != nullptr) (*hook)(scope + name, value);
    return value;
  }
  // The context of a module inside this one.
  ForwardContext inside(const char* module) const {
    return {layout, hook, cache, layer, hook != nullptr ? scope + module + "." : std::string(), padded};
  }
};

inline torch::Tensor apply_dropout(const torch::Tensor& x, double probability, bool training) {
  return torch::dropout(x, probability, training);
}

}  // namespace calque

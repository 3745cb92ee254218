// Pass: what a forward pass is told besides its input: where the pairs lie, and who wants to look at what is
// between.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>

#include "calque/kernels/layout.h"

namespace calque {

// Called with the name and value of every intermediate tensor, such as «blocks.2.attention.q».
using Tap = std::function<void(const std::string& name, const torch::Tensor& value)>;

struct Pass {
  const Layout& layout;
  const Tap* tap = nullptr;
  std::string scope = {};  // names of enclosing parts, with a dot behind each

  // Shows a tensor to the tap, if there is one, and passes it on.
  const torch::Tensor& show(const char* name, const torch::Tensor& value) const {
    if (tap != nullptr) (*tap)(scope + name, value);
    return value;
  }
  // The pass as a part inside this one sees it.
  Pass inside(const std::string& part) const {
    return {layout, tap, tap != nullptr ? scope + part + "." : scope};
  }
};

}  // namespace calque

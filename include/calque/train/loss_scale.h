// LossScale: dynamic loss scaling (Micikevicius et al., 2018). With products in float16 the loss is
// multiplied by it before the backward pass, so that small gradients are not rounded to zero, and the
// gradients are divided by it. A step that overflows is skipped and halves the scale; many good ones double
// it.
#pragma once

#include <cstdint>

namespace calque {

struct LossScale {
  double value = 65536;    // a power of two, so that dividing by it is exact
  int64_t good_steps = 0;  // since it last changed

  void update(bool overflowed) {
    constexpr int64_t steps_until_doubled = 2000;
    if (overflowed) {
      *this = {value / 2};
    } else if (++good_steps == steps_until_doubled) {
      *this = {value * 2};
    }
  }
};

}  // namespace calque

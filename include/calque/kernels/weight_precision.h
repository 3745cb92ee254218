// WeightPrecision: how weights that are not trained are stored, for inference or below adapters.
#pragma once

#include "calque/base/field.h"

namespace calque {

// float32: exact. bfloat16: half the memory traffic. int8: 255 levels per output row, a quarter of the memory
// traffic; activations keep at least 12 bits, so that only the rounding of the weights matters.
enum class WeightPrecision { float32, bfloat16, int8 };
template <>
struct EnumNames<WeightPrecision> {
  static constexpr std::string_view names[] = {"float32", "bfloat16", "int8"};
};

}  // namespace calque

// Packing: in what precision a weight is laid out that is not learnt, for translating or under adapters.
#pragma once

#include "calque/base/field.h"

namespace calque {

// float32: as it is. bfloat16: rounded, half as much to read for each row. int8: rounded to 255 steps for
// each output, a quarter of it; what it is multiplied with is rounded to 12 bits or more, next to nothing.
enum class Packing { float32, bfloat16, int8 };
template <>
struct EnumNames<Packing> {
  static constexpr std::string_view names[] = {"float32", "bfloat16", "int8"};
};

}  // namespace calque

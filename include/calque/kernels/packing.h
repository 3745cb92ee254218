// Packing: in what precision a weight is laid out for translating.
#pragma once

#include "calque/base/field.h"

namespace calque {

// float32: as it is. bfloat16: rounded, half the memory. int8: rounded to 255 steps for each output, a
// quarter of it; what it is multiplied with is rounded to at least 13 bits, which changes next to nothing.
enum class Packing { float32, bfloat16, int8 };
template <>
struct EnumNames<Packing> {
  static constexpr std::string_view names[] = {"float32", "bfloat16", "int8"};
};

}  // namespace calque

// DistributedConfig: the `distributed` section of a configuration. It has no effect on one process.
#pragma once

#include <cstdint>
#include <string_view>

#include "calque/base/field.h"

namespace calque {

enum class Compression { none, bfloat16 };
template <>
struct EnumNames<Compression> {
  static constexpr std::string_view names[] = {"none", "bfloat16"};
};

struct DistributedConfig {
  int64_t local_steps = 1;
  double outer_learning_rate = 1;
  double outer_momentum = 0;
  Compression compress = Compression::none;
  double timeout_seconds = 120;
};
Fields fields(DistributedConfig& config);

}  // namespace calque

// TER (Snover et al., 2006): the share of words to insert, delete, replace or shift in blocks, as sacreBLEU
// 2.6 counts them after Tercom. Lower is better.
#pragma once

#include <memory>

#include "calque/evaluate/metric.h"

namespace calque {

struct TerOptions {
  bool case_sensitive = false;
};

std::unique_ptr<Metric> make_ter(const TerOptions& options);

}  // namespace calque

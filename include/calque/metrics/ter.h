// TER (Snover et al., 2006): the number of insertions, deletions, replacements and block shifts, divided by
// the length of the reference. Computed as in sacreBLEU 2.6, which follows Tercom. Lower is better.
#pragma once

#include <memory>

#include "calque/metrics/metric.h"

namespace calque {

struct TerOptions {
  bool case_sensitive = false;
};

std::unique_ptr<Metric> make_ter(const TerOptions& options);

}  // namespace calque

// The report of a comparison: one self-contained page with scores, curves, lengths and sentences side by
// side.
#pragma once

#include <string>

#include "calque/runs/comparison.h"

namespace calque {

std::string comparison_page(const Comparison& comparison);

}  // namespace calque

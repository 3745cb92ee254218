// chrF (Popović, 2015) and chrF++ (2017) as sacreBLEU 2.6 computes them: an F-score of character n-grams,
// with word n-grams beside them in chrF++.
#pragma once

#include <memory>

#include "calque/evaluate/metric.h"

namespace calque {

struct ChrfOptions {
  int character_order = 6;
  int word_order = 0;  // 2: chrF++
  int beta = 2;        // recall weighs beta² times as much as precision
  bool lowercase = false;
};

std::unique_ptr<Metric> make_chrf(const ChrfOptions& options);

}  // namespace calque

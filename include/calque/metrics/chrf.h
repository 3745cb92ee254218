// chrF (Popović, 2015) and chrF++ (Popović, 2017), computed as in sacreBLEU 2.6: an F-score of character
// n-grams; chrF++ adds word n-grams.
#pragma once

#include <memory>

#include "calque/metrics/metric.h"

namespace calque {

struct ChrfOptions {
  int character_order = 6;
  int word_order = 0;  // 2: chrF++
  int beta = 2;        // weight of recall in the F-score: beta² times that of precision
  bool lowercase = false;
};

std::unique_ptr<Metric> make_chrf(const ChrfOptions& options);

}  // namespace calque

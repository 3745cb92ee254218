#include "calque/metrics/metric.h"

namespace calque {

std::vector<Statistics> count_all(const Metric& metric, const ScoredText& text,
                                  const std::function<void()>& check) {
  std::vector<Statistics> all;
  all.reserve(text.hypotheses.size());
  for (size_t i = 0; i < text.hypotheses.size(); ++i) {
    if (check) check();
    all.push_back(metric.count(text.hypotheses[i], text.references[i]));
  }
  return all;
}

Statistics sum_of(std::span<const Statistics> statistics) {
  if (statistics.empty()) return {};
  Statistics sums(statistics.front().size(), 0.0);
  for (const Statistics& one : statistics) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += one[i];
  }
  return sums;
}

}  // namespace calque

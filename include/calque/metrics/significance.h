// Significance: bootstrap confidence intervals (Koehn, 2004), and two tests of the difference between
// systems: the paired bootstrap and approximate randomisation (Riezler and Maxwell, 2005). Random draws and
// results match sacreBLEU 2.6.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calque/metrics/metric.h"

namespace calque {

inline constexpr uint32_t default_resampling_seed = 12345;  // sacreBLEU's
inline constexpr int default_resamples = 1000;
inline constexpr int default_trials = 10000;

// The 95 % confidence interval of the score, over resamples of the sentences.
struct Interval {
  double low = 0, high = 0;
  double mean = 0;
  double half_width() const { return (high - low) / 2; }
};
Interval bootstrap_interval(const Metric& metric, std::span<const Statistics> statistics,
                            int resamples = default_resamples, uint32_t seed = default_resampling_seed);

// The p-value: the probability that two equally good systems differ by at least as much as these two.
double paired_bootstrap(const Metric& metric, std::span<const Statistics> baseline,
                        std::span<const Statistics> system, int resamples = default_resamples,
                        uint32_t seed = default_resampling_seed);
double approximate_randomisation(const Metric& metric, std::span<const Statistics> baseline,
                                 std::span<const Statistics> system, int trials = default_trials,
                                 uint32_t seed = default_resampling_seed);
// The same test with all 2^n assignments of n sentences to the systems instead of random ones; for small n.
inline constexpr size_t max_exact_sentences = 13;
double exact_randomisation(const Metric& metric, std::span<const Statistics> baseline,
                           std::span<const Statistics> system);

}  // namespace calque

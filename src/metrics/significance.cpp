#include "calque/metrics/significance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "calque/metrics/numpy_random.h"

namespace calque {
namespace {

// Statistics as 32-bit floats, one sentence after another.
struct FlatStatistics {
  explicit FlatStatistics(std::span<const Statistics> statistics)
      : width(statistics.front().size()), values() {
    values.reserve(statistics.size() * width);
    for (const Statistics& one : statistics) values.insert(values.end(), one.begin(), one.end());
  }
  // Adds in float32, in the order of `drawn`, like numpy.
  void sum(std::span<const uint32_t> drawn, std::vector<float>& sums) const {
    sums.assign(width, 0.0F);
    for (const uint32_t sentence : drawn) {
      const float* row = &values[sentence * width];
      for (size_t i = 0; i < width; ++i) sums[i] += row[i];
    }
  }
  size_t width;
  std::vector<float> values;
};

// Calls use() with each resample: `count` sentence indices, drawn with replacement.
template <class Use>
void for_each_resample(size_t count, int resamples, uint32_t seed, Use use) {
  NumpyRandom random(seed);
  std::vector<uint32_t> drawn(count);
  for (int i = 0; i < resamples; ++i) {
    for (uint32_t& sentence : drawn) sentence = random.below(static_cast<uint32_t>(count));
    use(drawn);
  }
}

double share_above(const std::vector<double>& values, double limit) {
  const auto above = std::count_if(values.begin(), values.end(), [&](double v) { return v > limit; });
  return static_cast<double>(above + 1) / static_cast<double>(values.size() + 1);
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

Interval bootstrap_interval(const Metric& metric, std::span<const Statistics> statistics, int resamples,
                            uint32_t seed) {
  const FlatStatistics flat(statistics);
  std::vector<double> scores;
  std::vector<float> sums;
  for_each_resample(statistics.size(), resamples, seed, [&](const std::vector<uint32_t>& drawn) {
    flat.sum(drawn, sums);
    scores.push_back(metric.score_single(sums));
  });
  std::sort(scores.begin(), scores.end());
  const size_t cut = scores.size() / 40;
  return {scores[cut], scores[scores.size() - cut - 1], mean_of(scores)};
}

double paired_bootstrap(const Metric& metric, std::span<const Statistics> baseline,
                        std::span<const Statistics> system, int resamples, uint32_t seed) {
  const FlatStatistics flat_baseline(baseline), flat_system(system);
  const double difference = std::abs(metric.score(sum_of(baseline)) - metric.score(sum_of(system)));
  std::vector<double> differences;
  std::vector<float> sums;
  for_each_resample(baseline.size(), resamples, seed, [&](const std::vector<uint32_t>& drawn) {
    flat_baseline.sum(drawn, sums);
    const double of_baseline = metric.score_single(sums);
    flat_system.sum(drawn, sums);
    differences.push_back(std::abs(metric.score_single(sums) - of_baseline));
  });
  // Centre the differences, because the null hypothesis is that there is no difference.
  const double mean = mean_of(differences);
  for (double& value : differences) value -= mean;
  return share_above(differences, difference);
}

double approximate_randomisation(const Metric& metric, std::span<const Statistics> baseline,
                                 std::span<const Statistics> system, int trials, uint32_t seed) {
  const Statistics baseline_sums = sum_of(baseline), system_sums = sum_of(system);
  const double difference = std::abs(metric.score(baseline_sums) - metric.score(system_sums));
  const size_t width = baseline_sums.size();
  std::vector<double> gains;  // change of the sums if a sentence is taken from the baseline
  gains.reserve(baseline.size() * width);
  for (size_t i = 0; i < baseline.size(); ++i) {
    for (size_t j = 0; j < width; ++j) gains.push_back(baseline[i][j] - system[i][j]);
  }
  NumpyRandom random(seed);
  std::vector<double> differences;
  Statistics first(width), second(width);
  for (int trial = 0; trial < trials; ++trial) {
    first = system_sums;
    for (size_t i = 0; i < baseline.size(); ++i) {
      if (!random.coin()) continue;
      for (size_t j = 0; j < width; ++j) first[j] += gains[i * width + j];
    }
    for (size_t j = 0; j < width; ++j) second[j] = baseline_sums[j] + system_sums[j] - first[j];
    differences.push_back(std::abs(metric.score(first) - metric.score(second)));
  }
  return share_above(differences, difference);
}

double exact_randomisation(const Metric& metric, std::span<const Statistics> baseline,
                           std::span<const Statistics> system) {
  const Statistics baseline_sums = sum_of(baseline), system_sums = sum_of(system);
  const double difference = std::abs(metric.score(baseline_sums) - metric.score(system_sums));
  constexpr double rounding = 1e-9;  // mutate: any small number
  int64_t as_large = 0;
  const int64_t assignments = int64_t{1} << baseline.size();
  for (int64_t assignment = 0; assignment < assignments; ++assignment) {
    Statistics first(baseline_sums.size(), 0.0), second = first;
    for (size_t i = 0; i < baseline.size(); ++i) {
      const bool swap = (assignment >> i & 1) != 0;
      for (size_t j = 0; j < first.size(); ++j) {
        first[j] += swap ? system[i][j] : baseline[i][j];
        second[j] += swap ? baseline[i][j] : system[i][j];
      }
    }
    as_large += std::abs(metric.score(first) - metric.score(second)) >= difference - rounding;
  }
  return static_cast<double>(as_large) / static_cast<double>(assignments);
}

}  // namespace calque

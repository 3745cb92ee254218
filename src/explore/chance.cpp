// The random experiments: keys of random length with one head and with two, and the scale of scores.
#include <torch/types.h>

#include <cmath>

#include "attend.h"
#include "calque/report/chart.h"

namespace calque {
namespace {

using torch::Tensor;

// The covariance of key a is αI + ½ μ_a μ_aᵀ: the key keeps its direction, but its length is ε ~ N(1, ½ + α).
constexpr double length_variance = 0.5;

struct HeadSamples {
  std::vector<double> single, multi;      // weight on v_a: of one head, and the mean of two heads
  std::vector<double> single_b, multi_b;  // the same for v_b
};

// Draws all keys `samples` times and evaluates one head and two heads on the same draws.
HeadSamples sample_heads(const ExperimentOptions& options) {
  const auto n = std::max<int64_t>(3, std::llround(options.parameter("n")));
  const auto samples = std::max<int64_t>(100, std::llround(options.parameter("samples")));
  const double t = options.parameter("t"), alpha = options.parameter("alpha");
  auto random = generator_of(options.seed);
  const Tensor means = torch::eye(n, torch::kFloat64), values = torch::eye(n, torch::kFloat64);
  const Tensor between = t * (means[0] + means[1]);
  // One query between both means, then one query for each mean.
  const Tensor queries = torch::stack({between, t * means[0], t * means[1]});
  HeadSamples all;
  for (int64_t i = 0; i < samples; ++i) {
    options.check();
    Tensor keys = means + std::sqrt(alpha) * torch::randn({n, n}, random, torch::kFloat64);
    keys[0] += std::sqrt(length_variance) * torch::randn({1}, random, torch::kFloat64) * means[0];
    const Tensor output =
        attend(queries, keys, values).output;  // values are unit vectors, so the output is the weights
    const auto weight = [&](int64_t query, int64_t key) { return output[query][key].item<double>(); };
    all.single.push_back(weight(0, 0));
    all.single_b.push_back(weight(0, 1));
    all.multi.push_back((weight(1, 0) + weight(2, 0)) / 2);
    all.multi_b.push_back((weight(1, 1) + weight(2, 1)) / 2);
  }
  return all;
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments_of(const std::vector<double>& values) {
  Moments m;
  for (const double value : values) m.mean += value / static_cast<double>(values.size());
  for (const double value : values)
    m.variance += (value - m.mean) * (value - m.mean) / static_cast<double>(values.size() - 1);
  return m;
}

// Mean and variance of f(ε), ε ~ N(1, ½), by numerical integration over ±9 standard deviations.
template <class Function>
Moments expected_moments(Function f) {
  const double deviation = std::sqrt(length_variance);
  double mean = 0, square = 0, total = 0;
  for (double z = -9; z <= 9; z += 0.001) {
    const double density = std::exp(-z * z / 2), value = f(1 + deviation * z);
    mean += density * value;
    square += density * value * value;
    total += density;
  }
  mean /= total;
  return {mean, square / total - mean * mean};
}

std::string histogram(const std::vector<std::pair<std::string, const std::vector<double>*>>& series) {
  constexpr int bins = 20;
  BarChart chart{"draws, %", "weight on v_a", {}, {}};
  std::vector<std::vector<double>> shares;
  for (const auto& [name, values] : series) {
    chart.series.push_back(name);
    std::vector<double> counts(bins, 0.0);
    for (const double value : *values)
      counts[static_cast<size_t>(std::clamp<int>(static_cast<int>(value * bins), 0, bins - 1))] += 1;
    for (double& count : counts) count *= 100.0 / static_cast<double>(values->size());
    shares.push_back(counts);
  }
  for (int bin = 0; bin < bins; ++bin) {
    BarGroup group{bin % 4 == 0 ? fmt::format("{:.2f}", static_cast<double>(bin) / bins) : "", {}};
    for (const auto& counts : shares) group.bars.push_back({counts[static_cast<size_t>(bin)], 0, 0});
    chart.groups.push_back(group);
  }
  return bar_chart(chart);
}

double standard_error(const Moments& m, size_t samples) {
  return std::sqrt(m.variance / static_cast<double>(samples));
}

}  // namespace

ExperimentResult single_head_experiment(const ExperimentOptions& options) {
  const HeadSamples samples = sample_heads(options);
  const double t = options.parameter("t"), n = std::max(3.0, options.parameter("n"));
  const Moments found = moments_of(samples.single);
  const auto weight = [&](double e) { return 1 / (1 + std::exp(t * (1 - e)) + (n - 2) * std::exp(-t * e)); };
  const Moments expected = expected_moments(weight);
  const size_t count = samples.single.size();
  size_t extreme = 0;
  for (const double w : samples.single) extreme += w < 0.1 || w > 0.9;
  ExperimentResult result;
  result.explanation = fmt::format(
      "Keys are drawn around orthonormal means. All are almost exact except k_a, which keeps its\n"
      "direction but has a random length ε ~ N(1, ½). The query t·(μ_a + μ_b), t = {:g}, should average\n"
      "v_a and v_b. It gives v_a the weight 1 / (1 + e^(t(1-ε)) + (n-2)e^(-tε)), a sigmoid of the\n"
      "length: most draws give v_a or v_b, few their mean.\n",
      t);
  result.values = {{"mean", found.mean},
                   {"variance", found.variance},
                   {"expected_mean", expected.mean},
                   {"expected_variance", expected.variance},
                   {"share_beyond_0.1_and_0.9", static_cast<double>(extreme) / static_cast<double>(count)}};
  result.claims.push_back(near("mean of the weight on v_a, within four standard errors", expected.mean,
                               found.mean, 4 * standard_error(found, count) + 1e-4));
  result.claims.push_back(near("variance of the weight on v_a", expected.variance, found.variance,
                               0.03 * expected.variance + 1e-4));
  result.claims.push_back(
      {"draws with a weight on v_a below 0.1 or above 0.9", t >= 8 ? "> 50 %" : "depends on t",
       fmt::format("{:.1f} %", 100.0 * static_cast<double>(extreme) / static_cast<double>(count)),
       t < 8 || 2 * extreme > count});
  result.figures.push_back(
      {"single-head", "Weight on v_a over the draws, one head", histogram({{"one head", &samples.single}})});
  return result;
}

ExperimentResult multi_head_experiment(const ExperimentOptions& options) {
  const HeadSamples samples = sample_heads(options);
  const double t = options.parameter("t"), n = std::max(3.0, options.parameter("n"));
  const Moments single = moments_of(samples.single), multi = moments_of(samples.multi),
                other = moments_of(samples.multi_b);
  // The weight on k_a. Head 1 has the query tμ_a: e^(tε) / (e^(tε) + n - 1). Head 2 has the query tμ_b, to
  // which k_a is orthogonal: 1 / (eᵗ + n - 1).
  const auto weight = [&](double e) {
    return 0.5 * (1 / (1 + (n - 1) * std::exp(-t * e)) + 1 / (std::exp(t) + n - 1));
  };
  const Moments expected = expected_moments(weight);
  // The course material excludes draws with q·k_a < 0, in which no key matches head 1's query.
  std::vector<double> positive;
  for (const double w : samples.multi) {
    if (w > 0.25) positive.push_back(w);
  }
  const Moments filtered = moments_of(positive);
  ExperimentResult result;
  result.explanation = fmt::format(
      "The same draws of the keys, but two heads with the queries q₁ = tμ_a and q₂ = tμ_b, t = {:g},\n"
      "whose outputs are averaged. Head 1 attends to v_a if the length of k_a is positive; head 2\n"
      "always attends to v_b. Their mean stays at ½(v_a + v_b).\n",
      t);
  result.values = {{"mean", multi.mean},
                   {"variance", multi.variance},
                   {"single_variance", single.variance},
                   {"expected_mean", expected.mean},
                   {"expected_variance", expected.variance},
                   {"variance_without_negative_lengths", filtered.variance}};
  result.claims.push_back(near("mean of the weight on v_a, within four standard errors", expected.mean,
                               multi.mean, 4 * standard_error(multi, samples.multi.size()) + 1e-4));
  result.claims.push_back(near("variance of the weight on v_a", expected.variance, multi.variance,
                               0.1 * expected.variance + 1e-4));
  result.claims.push_back(near("mean of the weight on v_b", 0.5, other.mean, 0.01 + 2 * n * std::exp(-t)));
  result.claims.push_back(
      {"error in the course material: with q₁ = q₂ = t(μ_a + μ_b), as on one of its sheets, two heads equal "
       "one, whose variance is larger",
       "> 4 ×", fmt::format("{:.1f} ×", single.variance / multi.variance),
       t < 5 || single.variance > 4 * multi.variance});
  result.figures.push_back({"multi-head", "Weight on v_a over the same draws, one head and two heads",
                            histogram({{"one head", &samples.single}, {"two heads", &samples.multi}})});
  return result;
}

ExperimentResult scale_experiment(const ExperimentOptions& options) {
  const auto samples = std::max<int64_t>(1000, std::llround(options.parameter("samples")));
  const auto n = std::max<int64_t>(2, std::llround(options.parameter("n")));
  auto random = generator_of(options.seed);
  ExperimentResult result;
  result.explanation = fmt::format(
      "Query and key have D independent components with mean μ and variance 1. Their product q·k has\n"
      "mean Dμ² and, for μ = 0, variance D. In a softmax over {} keys, scores of that size put almost\n"
      "all weight on one key, and the gradient of the softmax vanishes. Divided by √D, the scores have\n"
      "variance 1 for every D.\n",
      n);
  Series mean_series{"mean of q·k, μ = 0", {}}, variance_series{"log₂ of the variance of q·k", {}},
      theory{"log₂ D", {}};
  Series entropy_plain{"not scaled", {}}, entropy_scaled{"divided by √D", {}};
  Series trace_plain{"not scaled", {}}, trace_scaled{"divided by √D", {}};
  nlohmann::json rows = nlohmann::json::array();
  double worst_variance = 0, worst_mean = 0, worst_shifted = 0, last_plain = 0, last_scaled = 0,
         first_scaled = 0;
  for (int64_t d = 1; d <= 1024; d *= 2) {
    std::vector<double> products, shifted;
    for (int64_t left = samples; left > 0; left -= 2000) {
      options.check();
      const int64_t count = std::min<int64_t>(2000, left);
      const Tensor q = torch::randn({count, d}, random, torch::kFloat64),
                   k = torch::randn({count, d}, random, torch::kFloat64);
      for (const double p : numbers((q * k).sum(1))) products.push_back(p);
      for (const double p : numbers(((q + 0.5) * (k + 0.5)).sum(1))) shifted.push_back(p);
    }
    const Moments m = moments_of(products), s = moments_of(shifted);
    const double width = static_cast<double>(d);
    worst_mean = std::max(worst_mean, std::abs(m.mean) / standard_error(m, products.size()));
    worst_variance = std::max(worst_variance, std::abs(m.variance / width - 1));
    worst_shifted =
        std::max(worst_shifted, std::abs(s.mean - 0.25 * width) / standard_error(s, shifted.size()));
    mean_series.points.emplace_back(std::log2(width), m.mean);
    variance_series.points.emplace_back(std::log2(width), std::log2(m.variance));
    theory.points.emplace_back(std::log2(width), std::log2(width));
    // The softmax of calque's attention: its entropy, and the trace of its Jacobian, Σ a(1 - a).
    double entropies[2] = {0, 0}, traces[2] = {0, 0};
    constexpr int64_t draws = 200;
    for (int64_t draw = 0; draw < draws; ++draw) {
      options.check();
      const Tensor q = torch::randn({1, d}, random, torch::kFloat64),
                   keys = torch::randn({n, d}, random, torch::kFloat64);
      for (const int which : {0, 1}) {
        const Tensor a = attend(q, keys, keys, which == 0 ? 1 : 1 / std::sqrt(width)).weights[0];
        entropies[which] -= (a * (a + 1e-300).log()).sum().item<double>() / draws;
        traces[which] += (a * (1 - a)).sum().item<double>() / draws;
      }
    }
    entropy_plain.points.emplace_back(std::log2(width), entropies[0]);
    entropy_scaled.points.emplace_back(std::log2(width), entropies[1]);
    trace_plain.points.emplace_back(std::log2(width), traces[0]);
    trace_scaled.points.emplace_back(std::log2(width), traces[1]);
    if (d == 1) first_scaled = entropies[1];
    last_plain = traces[0];
    last_scaled = traces[1];
    rows.push_back({{"width", d},
                    {"mean", m.mean},
                    {"variance", m.variance},
                    {"mean_with_mu_0.5", s.mean},
                    {"entropy", entropies[0]},
                    {"entropy_scaled", entropies[1]},
                    {"slope", traces[0]},
                    {"slope_scaled", traces[1]}});
  }
  result.values["widths"] = rows;
  const double relative =
      6 / std::sqrt(static_cast<double>(samples)) * 2.5;  // q·k has heavier tails than a normal distribution
  result.claims.push_back({"E[q·k] = 0 for μ = 0, D = 1 … 1024: largest difference, in standard errors",
                           "< 4.5", show(worst_mean), worst_mean < 4.5});
  result.claims.push_back({"E[q·k] = Dμ² for μ = ½: largest difference, in standard errors", "< 4.5",
                           show(worst_shifted), worst_shifted < 4.5});
  result.claims.push_back({"Var[q·k] = D: largest relative difference", "< " + show(relative),
                           show(worst_variance), worst_variance < relative});
  result.claims.push_back(
      {"trace of the softmax Jacobian at D = 1024 without scaling: under a tenth of that with scaling",
       "< " + show(0.1 * last_scaled), show(last_plain), last_plain < 0.1 * last_scaled});
  result.claims.push_back(
      {"with scaling, the entropy at D = 1024 is within 20 % of that at D = 1", show(first_scaled),
       show(entropy_scaled.points.back().second),
       std::abs(entropy_scaled.points.back().second - first_scaled) < 0.2 * first_scaled});
  result.figures.push_back({"scale-variance", "Variance of q·k by size D",
                            line_chart({"log₂ of the variance", "log₂ D", {variance_series, theory}})});
  result.figures.push_back({"scale-entropy", fmt::format("Entropy of the softmax over {} keys", n),
                            line_chart({"nats", "log₂ D", {entropy_plain, entropy_scaled}})});
  result.figures.push_back({"scale-slope", "Trace of the softmax Jacobian, Σ a(1 - a)",
                            line_chart({"Σ a(1 - a)", "log₂ D", {trace_plain, trace_scaled}})});
  return result;
}

}  // namespace calque

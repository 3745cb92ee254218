// The experiments with chance in them: keys of uncertain length under one head and two, and the scale of
// scores.
#include <torch/types.h>

#include <cmath>

#include "attend.h"
#include "calque/evaluate/chart.h"

namespace calque {
namespace {

using torch::Tensor;

// Σ_a = αI + ½ μ_a μ_aᵀ: the first key points where its mean does and is ε long, ε ~ N(1, ½ + α).
constexpr double length_variance = 0.5;

struct HeadSamples {
  std::vector<double> single, multi;  // the weight on v_a under one head, and the mean of two heads'
  std::vector<double> single_b, multi_b;
};

// Draws all keys `samples` times and asks both kinds of attention about the same ones.
HeadSamples sample_heads(const ExperimentOptions& options) {
  const auto n = std::max<int64_t>(3, std::llround(options.knob("n")));
  const auto samples = std::max<int64_t>(100, std::llround(options.knob("samples")));
  const double t = options.knob("t"), alpha = options.knob("alpha");
  auto random = generator_of(options.seed);
  const Tensor means = torch::eye(n, torch::kFloat64), values = torch::eye(n, torch::kFloat64);
  const Tensor between = t * (means[0] + means[1]);
  // The last three rows ask: one query between both means, one for each.
  const Tensor queries = torch::stack({between, t * means[0], t * means[1]});
  HeadSamples all;
  for (int64_t i = 0; i < samples; ++i) {
    Tensor keys = means + std::sqrt(alpha) * torch::randn({n, n}, random, torch::kFloat64);
    keys[0] += std::sqrt(length_variance) * torch::randn({1}, random, torch::kFloat64) * means[0];
    const Tensor output =
        attend(queries, keys, values).output;  // values are the unit vectors: weights come out
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

// The mean and variance of f(ε), ε ~ N(1, ½), by a fine sum over nine deviations to both sides.
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
  BarChart chart{"share of the draws, %", "weight on v_a", {}, {}};
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
  const double t = options.knob("t"), n = std::max(3.0, options.knob("n"));
  const Moments found = moments_of(samples.single);
  const auto weight = [&](double e) { return 1 / (1 + std::exp(t * (1 - e)) + (n - 2) * std::exp(-t * e)); };
  const Moments expected = expected_moments(weight);
  const size_t count = samples.single.size();
  size_t extreme = 0;
  for (const double w : samples.single) extreme += w < 0.1 || w > 0.9;
  ExperimentResult result;
  result.explanation = fmt::format(
      "Keys are drawn around means at right angles; all are sharp but k_a, which keeps its direction and has "
      "a length ε\n"
      "drawn from N(1, ½). The query t·(μ_a + μ_b), t = {:g}, meant to average v_a and v_b, gives v_a the "
      "weight\n"
      "1 / (1 + e^(t(1-ε)) + (n-2)e^(-tε)): a sigmoid of the length. One draw shows v_a, another v_b, hardly "
      "any the mean.\n",
      t);
  result.values = {{"mean", found.mean},
                   {"variance", found.variance},
                   {"expected_mean", expected.mean},
                   {"expected_variance", expected.variance},
                   {"share_beyond_0.1_and_0.9", static_cast<double>(extreme) / static_cast<double>(count)}};
  result.claims.push_back(near("mean of the weight on v_a, within four standard errors", expected.mean,
                               found.mean, 4 * standard_error(found, count) + 1e-4));
  result.claims.push_back(
      near("its variance", expected.variance, found.variance, 0.03 * expected.variance + 1e-4));
  result.claims.push_back(
      {"it swings: most draws give one of the two over nine tenths", t >= 8 ? "> 50 %" : "depends on t",
       fmt::format("{:.1f} %", 100.0 * static_cast<double>(extreme) / static_cast<double>(count)),
       t < 8 || 2 * extreme > count});
  result.figures.push_back({"single-head", "The weight on v_a over the draws, one head",
                            histogram({{"one head", &samples.single}})});
  return result;
}

ExperimentResult multi_head_experiment(const ExperimentOptions& options) {
  const HeadSamples samples = sample_heads(options);
  const double t = options.knob("t"), n = std::max(3.0, options.knob("n"));
  const Moments single = moments_of(samples.single), multi = moments_of(samples.multi),
                other = moments_of(samples.multi_b);
  // Head 1 asks for μ_a: eᵗᵉ / (eᵗᵉ + n - 1). Head 2 asks for μ_b, to which k_a is one of the n - 1 at right
  // angles.
  const auto weight = [&](double e) {
    return 0.5 * (1 / (1 + (n - 1) * std::exp(-t * e)) + 1 / (std::exp(t) + n - 1));
  };
  const Moments expected = expected_moments(weight);
  // The material lets draws with q·k_a < 0 aside, where the first head has nothing to look at.
  std::vector<double> positive;
  for (const double w : samples.multi) {
    if (w > 0.25) positive.push_back(w);
  }
  const Moments aside = moments_of(positive);
  ExperimentResult result;
  result.explanation = fmt::format(
      "The same draws of the same keys, but two heads whose outputs are averaged: q₁ = tμ_a and q₂ = tμ_b, t "
      "= {:g}. However long\n"
      "k_a is, the first head looks at v_a as long as the length is positive, and the second never looks "
      "there: the mean of\n"
      "both stays at ½(v_a + v_b).\n",
      t);
  result.values = {{"mean", multi.mean},
                   {"variance", multi.variance},
                   {"single_variance", single.variance},
                   {"expected_mean", expected.mean},
                   {"expected_variance", expected.variance},
                   {"variance_without_negative_lengths", aside.variance}};
  result.claims.push_back(near("mean of the weight on v_a, within four standard errors", expected.mean,
                               multi.mean, 4 * standard_error(multi, samples.multi.size()) + 1e-4));
  result.claims.push_back(
      near("its variance", expected.variance, multi.variance, 0.1 * expected.variance + 1e-4));
  result.claims.push_back(
      near("the weight on v_b stays at a half", 0.5, other.mean, 0.01 + 2 * n * std::exp(-t)));
  result.claims.push_back(
      {"slip in the material: q₁ = q₂ = t(μ_a + μ_b), which one of its sheets takes, is one head twice: over "
       "four times "
       "the variance",
       "> 4 times", fmt::format("{:.1f} times", single.variance / multi.variance),
       t < 5 || single.variance > 4 * multi.variance});
  result.figures.push_back({"multi-head", "The weight on v_a over the same draws, one head and two",
                            histogram({{"one head", &samples.single}, {"two heads", &samples.multi}})});
  return result;
}

ExperimentResult scale_experiment(const ExperimentOptions& options) {
  const auto samples = std::max<int64_t>(1000, std::llround(options.knob("samples")));
  const auto n = std::max<int64_t>(2, std::llround(options.knob("n")));
  auto random = generator_of(options.seed);
  ExperimentResult result;
  result.explanation = fmt::format(
      "Query and key of D independent numbers each with mean μ and variance σ² = 1: their product has the "
      "mean Dμ² and, for\n"
      "μ = 0, the variance D. Under a softmax over {} keys scores of that size leave one weight of almost 1, "
      "and the softmax's\n"
      "slope, which learning needs, goes to nothing. Divided by √D the scores keep variance 1, whatever D "
      "is.\n",
      n);
  Series mean_series{"mean of q·k, μ = 0", {}}, variance_series{"log₂ of the variance of q·k", {}},
      theory{"log₂ D", {}};
  Series entropy_plain{"without the scale", {}}, entropy_scaled{"divided by √D", {}};
  Series slope_plain{"without the scale", {}}, slope_scaled{"divided by √D", {}};
  nlohmann::json rows = nlohmann::json::array();
  double worst_variance = 0, worst_mean = 0, worst_shifted = 0, last_plain = 0, last_scaled = 0,
         first_scaled = 0;
  for (int64_t d = 1; d <= 1024; d *= 2) {
    std::vector<double> products, shifted;
    for (int64_t left = samples; left > 0; left -= 2000) {
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
    // The softmax, through our attention: its entropy, and Σ a(1 - a), the trace of its slope.
    double entropies[2] = {0, 0}, slopes[2] = {0, 0};
    constexpr int64_t draws = 200;
    for (int64_t draw = 0; draw < draws; ++draw) {
      const Tensor q = torch::randn({1, d}, random, torch::kFloat64),
                   keys = torch::randn({n, d}, random, torch::kFloat64);
      for (const int which : {0, 1}) {
        const Tensor a = attend(q, keys, keys, which == 0 ? 1 : 1 / std::sqrt(width)).weights[0];
        entropies[which] -= (a * (a + 1e-300).log()).sum().item<double>() / draws;
        slopes[which] += (a * (1 - a)).sum().item<double>() / draws;
      }
    }
    entropy_plain.points.emplace_back(std::log2(width), entropies[0]);
    entropy_scaled.points.emplace_back(std::log2(width), entropies[1]);
    slope_plain.points.emplace_back(std::log2(width), slopes[0]);
    slope_scaled.points.emplace_back(std::log2(width), slopes[1]);
    if (d == 1) first_scaled = entropies[1];
    last_plain = slopes[0];
    last_scaled = slopes[1];
    rows.push_back({{"width", d},
                    {"mean", m.mean},
                    {"variance", m.variance},
                    {"mean_with_mu_0.5", s.mean},
                    {"entropy", entropies[0]},
                    {"entropy_scaled", entropies[1]},
                    {"slope", slopes[0]},
                    {"slope_scaled", slopes[1]}});
  }
  result.values["widths"] = rows;
  const double relative =
      6 / std::sqrt(static_cast<double>(samples)) * 2.5;  // q·k has heavier tails than a normal
  result.claims.push_back({"E[q·k] = 0 for μ = 0, D = 1 … 1024, in standard errors", "< 4.5",
                           show(worst_mean), worst_mean < 4.5});
  result.claims.push_back(
      {"E[q·k] = Dμ² for μ = ½, in standard errors", "< 4.5", show(worst_shifted), worst_shifted < 4.5});
  result.claims.push_back({"Var[q·k] = D, the largest relative difference", "< " + show(relative),
                           show(worst_variance), worst_variance < relative});
  result.claims.push_back(
      {"at D = 1024 the softmax's slope is nearly gone without the scale, and is not with it",
       "a tenth at most", fmt::format("{} against {}", show(last_plain), show(last_scaled)),
       last_plain < 0.1 * last_scaled});
  result.claims.push_back(
      {"with the scale the entropy does not fall with D: at 1024 it is what it is at 1, within a fifth",
       show(first_scaled), show(entropy_scaled.points.back().second),
       std::abs(entropy_scaled.points.back().second - first_scaled) < 0.2 * first_scaled});
  result.figures.push_back({"scale-variance", "The variance of q·k grows with the width",
                            line_chart({"log₂ of the variance", "log₂ D", {variance_series, theory}})});
  result.figures.push_back({"scale-entropy", fmt::format("Entropy of the softmax over {} keys", n),
                            line_chart({"nats", "log₂ D", {entropy_plain, entropy_scaled}})});
  result.figures.push_back({"scale-slope", "Slope of the softmax, Σ a(1 - a)",
                            line_chart({"slope", "log₂ D", {slope_plain, slope_scaled}})});
  return result;
}

}  // namespace calque

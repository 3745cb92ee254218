// The deterministic experiments: worked example, copying, averaging, separate keys, queries and values.
#include <torch/types.h>

#include <cmath>

#include "attend.h"
#include "calque/report/chart.h"

namespace calque {

using torch::Tensor;

ExperimentResult worked_example(const ExperimentOptions&) {
  const Tensor x = rows_of({{2, 3}, {-1, 0}, {1, -2}});
  const Tensor w_q = rows_of({{1, 0, 2}, {0, 1, -3}}), w_k = rows_of({{0, 0, -1}, {-2, 0, 1}}),
               w_v = rows_of({{8, 0}, {0, 9}});
  const Tensor q = x.mm(w_q), k = x.mm(w_k), v = x.mm(w_v);  // [3, 3], [3, 3], [3, 2]
  // Keys have three columns, values two: pad the values with zeros, because attend() needs equal sizes.
  const Tensor wide = torch::cat({v, torch::zeros({3, 1}, torch::kFloat64)}, 1);
  const Attended attended = attend(q, k, wide);
  const Tensor scores = q.mm(k.t()), output = attended.output.slice(1, 0, 2);
  ExperimentResult result;
  result.explanation =
      "Three tokens with two components each. Queries, keys and values are products of the tokens with\n"
      "three matrices. The scores of token 3 are the products of its query with every key. The softmax\n"
      "turns them into weights, and the output is the weighted sum of the values. The matrix form\n"
      "softmax(Q·Kᵀ)·V computes all rows at once and gives the same result.\n";
  result.values = {{"q", matrix(q)},
                   {"k", matrix(k)},
                   {"v", matrix(v)},
                   {"scores", matrix(scores)},
                   {"weights", matrix(attended.weights)},
                   {"output", matrix(output)}};
  const auto add = [&](Claim claim) { result.claims.push_back(std::move(claim)); };
  add(near("queries", {2, 3, -5, -1, 0, -2, 1, -2, 8}, numbers(q), 1e-9));
  add(near("keys", {-6, 0, 1, 0, 0, 1, 4, 0, -3}, numbers(k), 1e-9));
  add(near("values", {16, 27, -8, 0, 8, -18}, numbers(v), 1e-9));
  add(near("scores of token 3", {2, 8, -20}, numbers(scores[2]), 1e-9));
  add(near("weights of token 3 on tokens 1 and 2", {0.00247, 0.99753},
           numbers(attended.weights[2].slice(0, 0, 2)), 5e-6));
  add(near("weight of token 3 on itself, times 10^13", 6.90, attended.weights[2][2].item<double>() * 1e13,
           0.005));
  add(near("output of token 3", {-7.94, 0.067}, numbers(output[2]), 0.005));
  Tensor sums = torch::zeros_like(output);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 3; ++j) sums[i] += attended.weights[i][j] * v[j];
  }
  add(near("largest difference between A·V and the sums of weighted values", 0,
           (output - sums).abs().max().item<double>(), 1e-12));
  const Attended fast = attend(q.to(torch::kFloat32), k.to(torch::kFloat32), wide.to(torch::kFloat32));
  add(near("largest difference between the fast kernel and the reference", 0,
           (fast.output.to(torch::kFloat64) - attended.output).abs().max().item<double>(), 1e-4));
  add({"error in the course material: the third component of token 2's query is 2·(-1) - 3·0 = -2, not 2",
       "-2", show(q[1][2].item<double>()), q[1][2].item<double>() == -2});
  std::vector<std::vector<double>> shares;
  for (int64_t i = 0; i < 3; ++i) shares.push_back(numbers(attended.weights[i]));
  result.figures.push_back({"worked-example", "Attention weights of the three tokens",
                            heat_map({{"token 1", "token 2", "token 3"}, {"1", "2", "3"}, shares})});
  return result;
}

ExperimentResult copy_experiment(const ExperimentOptions& options) {
  const auto n = std::max<int64_t>(2, std::llround(options.parameter("n")));
  const double t = options.parameter("t");
  auto random = generator_of(options.seed);
  const Tensor keys = torch::eye(n, torch::kFloat64), values = torch::randn({n, n}, random, torch::kFloat64);
  const auto error_at = [&](double scale) {
    const Attended attended = attend(scale * keys.slice(0, 0, 1), keys, values);
    return std::pair{(attended.output[0] - values[0]).norm().item<double>(), attended};
  };
  // c - v₁ = (1 - α₁)·(mean of the others - v₁), where α₁ = eᵗ / (eᵗ + n - 1).
  const double gap = (values.slice(0, 1).mean(0) - values[0]).norm().item<double>();
  const auto theory = [&](double scale) {
    return static_cast<double>(n - 1) / (std::exp(scale) + static_cast<double>(n) - 1) * gap;
  };
  const auto [error, attended] = error_at(t);
  ExperimentResult result;
  result.explanation = fmt::format(
      "{} orthonormal keys, and a query that is {:g} times the first key. The weights are a\n"
      "distribution over the keys. The first key gets the weight eᵗ / (eᵗ + n - 1), so that the output\n"
      "is the first value up to an error that falls as e⁻ᵗ: the value is copied.\n",
      n, t);
  Series measured{"measured", {}},
      expected{"(n - 1) / (eᵗ + n - 1) · distance to the mean of the others", {}};
  double worst = 0;
  for (double scale = 0; scale <= 20; scale += 1) {
    const double found = error_at(scale).first;
    measured.points.emplace_back(scale, std::log10(std::max(found, 1e-12)));
    expected.points.emplace_back(scale, std::log10(std::max(theory(scale), 1e-12)));
    worst = std::max(worst, std::abs(found - theory(scale)));
  }
  result.values = {
      {"weights", numbers(attended.weights[0])}, {"error", error}, {"expected_error", theory(t)}};
  result.claims.push_back(near("sum of the weights", 1, attended.weights.sum().item<double>(), 1e-12));
  result.claims.push_back({"no weight is negative", "≥ 0", show(attended.weights.min().item<double>()),
                           attended.weights.min().item<double>() >= 0});
  result.claims.push_back(near("weight on the first key: eᵗ / (eᵗ + n - 1)",
                               std::exp(t) / (std::exp(t) + static_cast<double>(n) - 1),
                               attended.weights[0][0].item<double>(), 1e-12));
  result.claims.push_back(near("distance between the output and the first value", theory(t), error, 1e-9));
  result.claims.push_back(
      near("its largest difference from the expected distance for t = 0 … 20", 0, worst, 1e-9));
  result.figures.push_back(
      {"copy", "Distance between the output and the copied value",
       line_chart({"log₁₀ of the error", "scale t of the query", {measured, expected}})});
  return result;
}

ExperimentResult average_experiment(const ExperimentOptions& options) {
  const auto n = std::max<int64_t>(3, std::llround(options.parameter("n")));
  const double t = options.parameter("t");
  auto random = generator_of(options.seed);
  const Tensor keys = torch::eye(n, torch::kFloat64), values = torch::randn({n, n}, random, torch::kFloat64);
  const Tensor mean = (values[0] + values[1]) / 2;
  const auto at = [&](double scale) {
    return attend(scale * (keys[0] + keys[1]).unsqueeze(0), keys, values);
  };
  const auto weight = [&](double scale, double count) {
    return std::exp(scale) / (2 * std::exp(scale) + count - 2);
  };
  const Attended attended = at(t);
  ExperimentResult result;
  result.explanation = fmt::format(
      "{0} orthonormal keys and the query t·(k_a + k_b), t = {1:g}. Both keys have the score t, all\n"
      "others 0. Each of the two gets the weight eᵗ / (2eᵗ + n - 2), almost ½, and the output is almost\n"
      "the mean of their values. If v_a and v_b lie in orthogonal subspaces, the projection M = A·Aᵀ\n"
      "onto the first subspace recovers v_a from v_a + v_b.\n",
      n, t);
  Series measured{"measured", {}};
  for (double scale = 0; scale <= 20; scale += 1)
    measured.points.emplace_back(
        scale, std::log10(std::max((at(scale).output[0] - mean).norm().item<double>(), 1e-12)));
  LineChart by_count{"log₁₀(½ - weight)", "scale t of the query", {}};
  for (const double count : {4.0, 16.0, 64.0, 256.0}) {
    Series series{fmt::format("n = {:.0f}", count), {}};
    for (double scale = 0; scale <= 16; scale += 1)
      series.points.emplace_back(scale, std::log10(0.5 - weight(scale, count)));
    by_count.series.push_back(series);
  }
  // Two orthogonal subspaces of R⁸, of dimension 3 each; v_a from one, v_b from the other.
  const Tensor basis = std::get<0>(at::linalg_qr(torch::randn({8, 6}, random, torch::kFloat64)));
  const Tensor a = basis.slice(1, 0, 3), b = basis.slice(1, 3, 6);  // [8, 3] each, orthonormal columns
  const Tensor v_a = a.mv(torch::randn({3}, random, torch::kFloat64)),
               v_b = b.mv(torch::randn({3}, random, torch::kFloat64));
  const Tensor m = a.mm(a.t());
  const Tensor wrong = a.t().mm(a);
  result.values = {{"weights", numbers(attended.weights[0])},
                   {"error", (attended.output[0] - mean).norm().item<double>()},
                   {"projection_error", (m.mv(v_a + v_b) - v_a).norm().item<double>()}};
  result.claims.push_back(near("weights on the two keys: eᵗ / (2eᵗ + n - 2)",
                               {weight(t, static_cast<double>(n)), weight(t, static_cast<double>(n))},
                               numbers(attended.weights[0].slice(0, 0, 2)), 1e-12));
  const double gap = ((values.slice(0, 2).sum(0)) - static_cast<double>(n - 2) * mean).norm().item<double>() /
                     (2 * std::exp(t) + static_cast<double>(n) - 2);
  result.claims.push_back(near("distance between the output and the mean of the two values", gap,
                               (attended.output[0] - mean).norm().item<double>(), 1e-9));
  result.claims.push_back(near("distance between M·(v_a + v_b) and v_a, with M = A·Aᵀ", 0,
                               (m.mv(v_a + v_b) - v_a).norm().item<double>(), 1e-12));
  result.claims.push_back(
      {"error in the course material: Aᵀ·A, which it also uses, is the identity and not a projection",
       "3 × 3, the identity",
       fmt::format("{} × {}, {:.1e} from the identity", wrong.size(0), wrong.size(1),
                   (wrong - torch::eye(3, torch::kFloat64)).abs().max().item<double>()),
       wrong.size(0) == 3 && (wrong - torch::eye(3, torch::kFloat64)).abs().max().item<double>() < 1e-12});
  result.figures.push_back({"average", "Distance between the output and the mean",
                            line_chart({"log₁₀ of the error", "scale t of the query", {measured}})});
  result.figures.push_back(
      {"average-by-keys", "Difference between each weight and ½, by number of keys", line_chart(by_count)});
  return result;
}

ExperimentResult key_query_value_experiment(const ExperimentOptions& options) {
  const double beta = options.parameter("beta");
  const Tensor u = beta * torch::eye(4, torch::kFloat64);           // u_a, u_b, u_c, u_d
  const Tensor x = torch::stack({u[3] + u[1], u[0], u[2] + u[1]});  // [3, 4]
  ExperimentResult result;
  result.explanation = fmt::format(
      "The words x₁ = u_d + u_b, x₂ = u_a and x₃ = u_c + u_b are sums of orthogonal vectors of length β\n"
      "= {:g}. If the words themselves are queries, keys and values, word 2 attends only to itself. A\n"
      "vector added to it so that it attends to word 1 also appears in its output, so that it never\n"
      "gets u_b alone.\n"
      "With V = (u_b u_bᵀ - u_c u_cᵀ)/β², K = I and Q = (u_d u_aᵀ + u_c u_dᵀ)/β², word 2 gets exactly\n"
      "u_b and word 1 gets u_b - u_c: which word to attend to and what to take from it are now\n"
      "independent.\n",
      beta);
  const Attended plain = attend(x, x, x);
  const auto outer = [&](const Tensor& left, const Tensor& right) {
    return left.unsqueeze(1).mm(right.unsqueeze(0));
  };
  const Tensor v_matrix = (outer(u[1], u[1]) - outer(u[2], u[2])) / (beta * beta);
  const Tensor q_matrix = (outer(u[3], u[0]) + outer(u[2], u[3])) / (beta * beta);
  const Tensor q = x.mm(q_matrix.t()), v = x.mm(v_matrix.t());
  const Attended attended = attend(q, x, v);
  const auto distance = [&](const Tensor& found, const Tensor& expected) {
    return (found - expected).norm().item<double>() / beta;
  };
  // With u_d added, word 2 has the score β² on x₁ but 2β² on itself.
  const Tensor helped = torch::stack({x[0], u[0] + u[3], x[2]});
  const Tensor fetched = attend(helped, helped, helped).output[1];
  result.values = {{"c2_without", numbers(plain.output[1])},
                   {"weights", matrix(attended.weights)},
                   {"c1", numbers(attended.output[0])},
                   {"c2", numbers(attended.output[1])}};
  const auto add = [&](Claim claim) { result.claims.push_back(std::move(claim)); };
  add(near("without matrices: distance between c₂ and u_a, in units of β", 0, distance(plain.output[1], u[0]),
           1e-6));
  add({"with u_d added to x₂: distance between c₂ and u_b, in units of β", "≥ 1",
       show(distance(fetched, u[1])), distance(fetched, u[1]) >= 1});
  add(near(
      "v₁ = u_b and v₃ = u_b - u_c: largest difference", 0,
      std::max((v[0] - u[1]).abs().max().item<double>(), (v[2] - (u[1] - u[2])).abs().max().item<double>()),
      1e-9));
  add(near("α₁, the weights of word 1", {0, 0, 1}, numbers(attended.weights[0]), 1e-6));
  add(near("α₂, the weights of word 2 (error in the course material: (1, 0, 1), which does not sum to 1)",
           {1, 0, 0}, numbers(attended.weights[1]), 1e-6));
  add(near("distance between c₂ and u_b, in units of β", 0, distance(attended.output[1], u[1]), 1e-6));
  add(near("distance between c₁ and u_b - u_c, in units of β", 0, distance(attended.output[0], u[1] - u[2]),
           1e-6));
  std::vector<std::vector<double>> shares;
  for (int64_t i = 0; i < 3; ++i) shares.push_back(numbers(attended.weights[i]));
  result.figures.push_back({"key-query-value", "Attention weights of the three words, with matrices",
                            heat_map({{"x₁", "x₂", "x₃"}, {"x₁", "x₂", "x₃"}, shares})});
  return result;
}

}  // namespace calque

// Helpers of the experiments: calque's attention on a few vectors, and claims about numbers.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "calque/explore/experiment.h"
#include "calque/kernels/attention.h"

namespace calque {

struct Attended {
  torch::Tensor weights;  // [m, n]
  torch::Tensor output;   // [m, d]
};
// Attention of every query to all keys. queries: [m, d]; keys, values: [n, d]; m ≤ n.
inline Attended attend(const torch::Tensor& queries, const torch::Tensor& keys, const torch::Tensor& values,
                       double scale = 1) {
  const int64_t m = queries.size(0), n = keys.size(0), d = keys.size(1);
  Layout layout;
  layout.offsets = {0, n};
  layout.prefix_ends = {n};
  layout.query_offsets = {0, m};
  layout.positions = torch::arange(n, torch::kInt64);
  layout.query_rows = torch::arange(n - m, n, torch::kInt64);
  const AttentionShape shape{1, 1, d, scale};
  const torch::Tensor kv = torch::cat({keys, values}, 1);
  return {attention_weights(queries, kv, layout, shape, nullptr, 0)[0],
          attention(queries, kv, layout, shape, nullptr)};
}

inline std::vector<double> numbers(const torch::Tensor& x) {
  const torch::Tensor flat = x.to(torch::kFloat64).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}
inline nlohmann::json matrix(const torch::Tensor& x) {
  nlohmann::json rows = nlohmann::json::array();
  for (int64_t i = 0; i < x.size(0); ++i) rows.push_back(numbers(x[i]));
  return rows;
}

inline torch::Tensor rows_of(const std::vector<std::vector<double>>& rows) {
  std::vector<double> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return torch::tensor(flat, torch::kFloat64)
      .view({static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows.front().size())});
}

inline at::Generator generator_of(uint64_t seed) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

inline std::string show(double value) { return fmt::format("{:.6g}", value); }
inline std::string show(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "(" : ", ") + show(value);
  return text + ")";
}

// A claim that a number equals its expected value, within a tolerance.
inline Claim near(const std::string& claim, double expected, double found, double tolerance) {
  return {claim, show(expected), show(found), std::abs(found - expected) <= tolerance};
}
inline Claim near(const std::string& claim, const std::vector<double>& expected,
                  const std::vector<double>& found, double tolerance) {
  bool holds = expected.size() == found.size();
  for (size_t i = 0; holds && i < expected.size(); ++i) holds = std::abs(expected[i] - found[i]) <= tolerance;
  return {claim, show(expected), show(found), holds};
}

}  // namespace calque

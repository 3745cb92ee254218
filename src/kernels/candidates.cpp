#include "calque/kernels/candidates.h"

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <limits>

#include "calque/kernels/simd_loops.h"
#include "fast.h"

namespace calque {

using torch::Tensor;

Candidates best_candidates(const Tensor& given, int64_t count, const std::vector<int32_t>& forbidden,
                           const std::vector<Ban>& bans) {
  if (!is_fast(given)) return reference::best_candidates(given, count, forbidden, bans);
  const Tensor logits = given.contiguous();
  const int64_t rows = logits.size(0), vocabulary = logits.size(1);
  Candidates best;
  best.count = std::min(count, vocabulary);
  best.log_probabilities.resize(static_cast<size_t>(rows * best.count));
  best.tokens.resize(best.log_probabilities.size());
  std::vector<float> sums(static_cast<size_t>(rows));
  float* values = logits.mutable_data_ptr<float>();
  at::parallel_for(0, rows, 4, [&](int64_t begin, int64_t end) {
    simd::log_sum_rows(values, vocabulary, sums.data(), begin, end);
    for (int64_t row = begin; row < end; ++row) {
      for (const int32_t token : forbidden)
        values[row * vocabulary + token] = -std::numeric_limits<float>::infinity();
    }
  });
  for (const Ban& ban : bans)
    values[ban.row * vocabulary + ban.token] = -std::numeric_limits<float>::infinity();
  at::parallel_for(0, rows, 4, [&](int64_t begin, int64_t end) {
    simd::top_of_rows(values, vocabulary, best.count, best.log_probabilities.data(), best.tokens.data(),
                      begin, end);
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < best.count; ++i) best.log_probabilities[row * best.count + i] -= sums[row];
    }
  });
  return best;
}

Candidates reference::best_candidates(const Tensor& logits, int64_t count,
                                      const std::vector<int32_t>& forbidden, const std::vector<Ban>& bans) {
  const Tensor sums = logits.logsumexp(1, true);  // [rows, 1]
  Tensor allowed = logits - sums;                 // [rows, vocabulary]
  for (const int32_t token : forbidden)
    allowed.select(1, token).fill_(-std::numeric_limits<double>::infinity());
  for (const Ban& ban : bans) allowed[ban.row][ban.token] = -std::numeric_limits<double>::infinity();
  const auto [values, order] = allowed.sort(/*stable=*/true, 1, /*descending=*/true);
  Candidates best;
  best.count = std::min(count, logits.size(1));
  const Tensor top = values.slice(1, 0, best.count).to(torch::kCPU, torch::kFloat32).contiguous();
  const Tensor tokens = order.slice(1, 0, best.count).to(torch::kCPU, torch::kInt32).contiguous();
  best.log_probabilities.assign(top.const_data_ptr<float>(), top.const_data_ptr<float>() + top.numel());
  best.tokens.assign(tokens.const_data_ptr<int32_t>(), tokens.const_data_ptr<int32_t>() + top.numel());
  for (size_t i = 0; i < best.tokens.size(); ++i) {
    if (!(best.log_probabilities[i] > -std::numeric_limits<float>::infinity())) best.tokens[i] = -1;
  }
  return best;
}

}  // namespace calque

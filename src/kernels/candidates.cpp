#include "calque/kernels/candidates.h"

#include <torch/types.h>

#include <bit>
#include <limits>
#include <span>

#include "calque/kernels/layout.h"
#include "calque/kernels/threads.h"
#include "fast.h"
#include "simd_loops.h"

namespace calque {

using torch::Tensor;

Candidates top_candidates(const Tensor& logits_given, int64_t count, const std::vector<int32_t>& forbidden,
                          const std::vector<BannedToken>& banned) {
  if (!is_fast(logits_given)) return portable::top_candidates(logits_given, count, forbidden, banned);
  const Tensor logits = logits_given.contiguous();
  const int64_t rows = logits.size(0), vocabulary = logits.size(1);
  Candidates candidates;
  candidates.count = std::min(count, vocabulary);
  candidates.log_probabilities.resize(static_cast<size_t>(rows * candidates.count));
  candidates.tokens.resize(candidates.log_probabilities.size());
  std::vector<float> log_sums(static_cast<size_t>(rows));
  float* values = logits.mutable_data_ptr<float>();
  parallel_rows(rows, 4, [&](int64_t begin, int64_t end) {
    simd::log_sum_exp_rows(values, vocabulary, log_sums.data(), begin, end);
    for (int64_t row = begin; row < end; ++row) {
      for (const int32_t token : forbidden)
        values[row * vocabulary + token] = -std::numeric_limits<float>::infinity();
    }
  });
  for (const BannedToken& one : banned)
    values[one.row * vocabulary + one.token] = -std::numeric_limits<float>::infinity();
  parallel_rows(rows, 4, [&](int64_t begin, int64_t end) {
    simd::top_k_rows(values, vocabulary, candidates.count, candidates.log_probabilities.data(),
                     candidates.tokens.data(), begin, end);
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < candidates.count; ++i)
        candidates.log_probabilities[row * candidates.count + i] -= log_sums[row];
    }
  });
  return candidates;
}

namespace {

// The bits of floats as integers with the same order; once more, and they are the bits again.
Tensor ordered(const Tensor& bits) { return torch::where(bits < 0, bits ^ 0x7FFFFFFF, bits); }
int32_t ordered(int32_t bits) { return bits < 0 ? bits ^ 0x7FFFFFFF : bits; }

}  // namespace

// The k largest of one integer per token: the log-probability's bits above, the token's rank among equals
// below. No two are equal, so that every device finds the same ones, and one copy brings them to the CPU.
Candidates portable::top_candidates(const Tensor& logits_given, int64_t count,
                                    const std::vector<int32_t>& forbidden,
                                    const std::vector<BannedToken>& banned) {
  const Tensor logits = logits_given.to(torch::kFloat32);
  const int64_t vocabulary = logits.size(1);
  const Tensor allowed = logits - logits.logsumexp(1, true);  // [rows, vocabulary]
  const double never = -std::numeric_limits<double>::infinity();
  if (!forbidden.empty())
    allowed.index_fill_(1, index_tensor({forbidden.begin(), forbidden.end()}, logits.device()), never);
  std::vector<int64_t> cells;
  for (const BannedToken& one : banned) cells.push_back(one.row * vocabulary + one.token);
  if (!cells.empty()) allowed.view({-1}).index_fill_(0, index_tensor(cells, logits.device()), never);
  const Tensor ranks =
      torch::arange(vocabulary - 1, -1, -1, logits.options().dtype(torch::kInt64));  // [vocabulary]
  const Tensor keys = ordered(allowed.view(torch::kInt32)).to(torch::kInt64) * (int64_t{1} << 32) + ranks;
  Candidates candidates;
  candidates.count = std::min(count, vocabulary);
  const Tensor top = std::get<0>(keys.topk(candidates.count, 1)).cpu().contiguous();  // [rows, count]
  for (const int64_t key : std::span(top.const_data_ptr<int64_t>(), static_cast<size_t>(top.numel()))) {
    const auto log_probability = std::bit_cast<float>(ordered(static_cast<int32_t>(key >> 32)));
    const bool possible = log_probability > -std::numeric_limits<float>::infinity();
    candidates.log_probabilities.push_back(log_probability);
    candidates.tokens.push_back(possible ? static_cast<int32_t>(vocabulary - 1 - (key & 0xFFFFFFFF)) : -1);
  }
  return candidates;
}

Candidates reference::top_candidates(const Tensor& logits, int64_t count,
                                     const std::vector<int32_t>& forbidden,
                                     const std::vector<BannedToken>& banned) {
  const Tensor log_sums = logits.logsumexp(1, true);  // [rows, 1]
  Tensor allowed = logits - log_sums;                 // [rows, vocabulary]
  for (const int32_t token : forbidden)
    allowed.select(1, token).fill_(-std::numeric_limits<double>::infinity());
  for (const BannedToken& one : banned)
    allowed[one.row][one.token] = -std::numeric_limits<double>::infinity();
  const auto [values, order] = allowed.sort(/*stable=*/true, 1, /*descending=*/true);
  Candidates candidates;
  candidates.count = std::min(count, logits.size(1));
  const Tensor top = values.slice(1, 0, candidates.count).to(torch::kCPU, torch::kFloat32).contiguous();
  const Tensor tokens = order.slice(1, 0, candidates.count).to(torch::kCPU, torch::kInt32).contiguous();
  candidates.log_probabilities.assign(top.const_data_ptr<float>(), top.const_data_ptr<float>() + top.numel());
  candidates.tokens.assign(tokens.const_data_ptr<int32_t>(), tokens.const_data_ptr<int32_t>() + top.numel());
  for (size_t i = 0; i < candidates.tokens.size(); ++i) {
    if (!(candidates.log_probabilities[i] > -std::numeric_limits<float>::infinity()))
      candidates.tokens[i] = -1;
  }
  return candidates;
}

}  // namespace calque

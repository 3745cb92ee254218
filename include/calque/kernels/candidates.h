// Candidates: the most probable next tokens for each row of logits.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace calque {

struct Candidates {
  int64_t count = 0;
  std::vector<float> log_probabilities;  // [rows, count], descending; ties: the lower token id first
  std::vector<int32_t> tokens;           // [rows, count]; -1 where fewer than `count` tokens are allowed
};

// A token that one row must not produce. The other tokens' probabilities are not renormalised.
struct BannedToken {
  int64_t row;
  int32_t token;
};

// logits: [rows, vocabulary]; entries of banned tokens may be overwritten. forbidden: banned in every row;
// banned: in single rows.
Candidates top_candidates(const torch::Tensor& logits, int64_t count, const std::vector<int32_t>& forbidden,
                          const std::vector<BannedToken>& banned);

namespace portable {
Candidates top_candidates(const torch::Tensor& logits, int64_t count, const std::vector<int32_t>& forbidden,
                          const std::vector<BannedToken>& banned);
}  // namespace portable

namespace reference {
Candidates top_candidates(const torch::Tensor& logits, int64_t count, const std::vector<int32_t>& forbidden,
                          const std::vector<BannedToken>& banned);
}  // namespace reference

}  // namespace calque

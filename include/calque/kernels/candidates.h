// Candidates: the most probable next tokens of each row of logits.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace calque {

struct Candidates {
  int64_t count = 0;
  std::vector<float> log_probabilities;  // [rows, count], the highest first; of equals the lower token first
  std::vector<int32_t> tokens;           // [rows, count]; -1 where fewer tokens than `count` are allowed
};

// Which tokens a row may not go on with. They keep their share of the probability.
struct Ban {
  int64_t row;
  int32_t token;
};

// logits: [rows, vocabulary], which is overwritten where tokens are banned. forbidden: from every row.
Candidates best_candidates(const torch::Tensor& logits, int64_t count, const std::vector<int32_t>& forbidden,
                           const std::vector<Ban>& bans);

namespace reference {
Candidates best_candidates(const torch::Tensor& logits, int64_t count, const std::vector<int32_t>& forbidden,
                           const std::vector<Ban>& bans);
}  // namespace reference

}  // namespace calque

#include "calque/decode/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace calque {

size_t draw_token(const std::vector<double>& logits, const DecodeConfig& config, uint64_t seed) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (config.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(config.top_k)));
  std::vector<double> shares;
  double sum = 0;
  for (const size_t i : order) {
    shares.push_back(std::exp((logits[i] - logits[order.front()]) / config.temperature));
    sum += shares.back();
  }
  double kept = 0;
  size_t count = 0;
  while (count < shares.size() && (count == 0 || kept < config.top_p * sum)) kept += shares[count++];
  std::mt19937_64 random(seed);
  double left = std::uniform_real_distribution<double>(0, kept)(random);
  for (size_t i = 0; i + 1 < count; ++i) {
    if (left < shares[i]) return order[i];
    left -= shares[i];
  }
  return order[count - 1];
}

}  // namespace calque

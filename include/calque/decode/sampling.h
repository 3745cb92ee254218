// Sampling: one token by chance, by the probabilities that a configuration shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calque/decode/decode_config.h"

namespace calque {

// From logits, of which -infinity is never drawn: the temperature first, then the most probable `top_k`, of
// these as few as sum to `top_p`. The same seed draws the same token.
size_t draw_token(const std::vector<double>& logits, const DecodeConfig& config, uint64_t seed);

}  // namespace calque

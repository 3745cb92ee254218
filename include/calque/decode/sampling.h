// Sampling: one random token, with temperature, top-k and top-p.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calque/decode/decode_config.h"

namespace calque {

// Logits of -infinity are never sampled. The temperature is applied first, then top_k, then top_p. The same
// seed gives the same token.
size_t draw_token(const std::vector<double>& logits, const DecodeConfig& config, uint64_t seed);

}  // namespace calque

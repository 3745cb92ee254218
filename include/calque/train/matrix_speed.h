// What this machine's matrix products can do at a model's own shapes: the limit that training speed is held
// against.
#pragma once

#include "calque/model/decoder.h"

namespace calque {

// Floating-point operations a second over the products of one block, each at the best of a few short runs;
// about half a second.
double measure_matrix_speed(const ModelConfig& config, int64_t rows, at::ScalarType type = at::kFloat);

// Nominal operations of training on one token: six for each weight it passes, four for a frozen one; the
// output matrix only for the share of tokens that carry loss.
double training_flops_a_token(const Decoder& decoder, double loss_share);

}  // namespace calque

// What this machine's matrix products can do at a model's own shapes: the limit that training speed is held
// against.
#pragma once

#include "calque/model/model_config.h"

namespace calque {

// Floating-point operations a second, best of a few short runs of the model's largest product; about a
// quarter second.
double measure_matrix_speed(const ModelConfig& config, int64_t rows);

// Nominal operations of training on one token: six for each weight it passes; the output matrix only for the
// share of tokens that carry loss.
double training_flops_a_token(const ModelConfig& config, double loss_share);

}  // namespace calque

// A sum over many values that threads share, with the same bits for any number of threads.
#pragma once

#include <torch/types.h>

namespace calque {

// Of float32 tensors on the CPU that have as many values: the sum of their products.
double sum_of_products(const torch::Tensor& a, const torch::Tensor& b);

}  // namespace calque

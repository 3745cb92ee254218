// MatrixSpeed: the speed of this machine's matrix products at a model's own shapes, the upper limit of its
// training speed. Each by LibTorch or by our own loops, whichever is faster.
#pragma once

#include <limits>
#include <vector>

#include "calque/model/decoder.h"

namespace calque {

class MatrixSpeed {
 public:
  MatrixSpeed(const ModelConfig& config, int64_t rows, const at::TensorOptions& options = at::kFloat);

  // Times each product of a block twice, after one untimed run.
  void sample();
  double mean() const {
    return 2 * operations_ * static_cast<double>(samples_) / timed_;
  }                                                  // FLOP/s over all samples
  double best() const;                               // FLOP/s with each product at its fastest
  double operations() const { return operations_; }  // FLOPs of all products, each once
  double seconds() const { return seconds_; }        // that the samples have taken

 private:
  struct Product {
    at::Tensor x, weight, y;
    bool is_ours = false;
    double best = std::numeric_limits<double>::infinity();  // seconds
  };
  static void multiply(const Product& product);
  std::vector<Product> products_;
  double operations_ = 0;
  double timed_ = 0, seconds_ = 0;
  int64_t samples_ = 0;
};

// The best of about half a second.
double measure_matrix_speed(const ModelConfig& config, int64_t rows,
                            const at::TensorOptions& options = at::kFloat);

// Nominal FLOPs of training on one token: six per weight, four for a frozen one; the output matrix only for
// the share of tokens that carry loss.
double training_flops_per_token(const Decoder& decoder, double loss_share);

}  // namespace calque

// What this machine's matrix products can do at a model's own shapes: the limit that training speed is held
// against.
#pragma once

#include <vector>

#include "calque/model/decoder.h"

namespace calque {

// Floating-point operations a second over the products of one block, by samples.
class MatrixSpeed {
 public:
  MatrixSpeed(const ModelConfig& config, int64_t rows, at::ScalarType type = at::kFloat);

  // Each product twice, after once that does not count.
  void sample();
  // Over all samples.
  double mean() const { return 2 * operations_ * static_cast<double>(samples_) / timed_; }
  // Each product at its best.
  double best() const;
  // What the samples have taken.
  double seconds() const { return seconds_; }

 private:
  struct Product {
    at::Tensor x, weight, y;
    double best;  // seconds
  };
  std::vector<Product> products_;
  double operations_ = 0;  // of all of them
  double timed_ = 0, seconds_ = 0;
  int64_t samples_ = 0;
};

// The best of about half a second.
double measure_matrix_speed(const ModelConfig& config, int64_t rows, at::ScalarType type = at::kFloat);

// Nominal operations of training on one token: six for each weight it passes, four for a frozen one; the
// output matrix only for the share of tokens that carry loss.
double training_flops_a_token(const Decoder& decoder, double loss_share);

}  // namespace calque

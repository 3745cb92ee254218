#include "calque/train/matrix_speed.h"

#include <ATen/ATen.h>

#include <chrono>

namespace calque {

double measure_matrix_speed(const ModelConfig& config, int64_t rows) {
  const at::NoGradGuard no_gradients;
  const int64_t outputs = config.feed_forward_width * (config.is_gated() ? 2 : 1);
  const at::Tensor x = at::randn({rows, config.width}), weight = at::randn({outputs, config.width});
  at::Tensor y = at::empty({rows, outputs});
  const double operations = 2.0 * static_cast<double>(rows * outputs * config.width);
  double best = 0, spent = 0;
  for (int repeat = 0; repeat < 3 || (spent < 0.25 && repeat < 200); ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    at::mm_out(y, x, weight.t());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, operations / seconds);
    spent += seconds;
  }
  return best;
}

double training_flops_a_token(const ModelConfig& config, double loss_share) {
  return 6.0 * (static_cast<double>(block_weights(config)) +
                loss_share * static_cast<double>(output_weights(config)));
}

}  // namespace calque

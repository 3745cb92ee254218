#include "calque/train/matrix_speed.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace calque {

double measure_matrix_speed(const ModelConfig& config, int64_t rows, at::ScalarType type) {
  const at::NoGradGuard no_gradients;
  const auto options = at::TensorOptions().dtype(type);
  const int64_t queries = config.heads * config.width_of_head(),
                keys_values = 2 * config.key_value_head_count() * config.width_of_head(),
                up = config.feed_forward_width * (config.is_gated() ? 2 : 1);
  double operations = 0, seconds = 0;
  const std::pair<int64_t, int64_t> products[] = {{config.width, queries + keys_values},
                                                  {queries, config.width},
                                                  {config.width, up},
                                                  {config.feed_forward_width, config.width}};
  for (const auto& [inputs, outputs] : products) {
    const at::Tensor x = at::randn({rows, inputs}, options), weight = at::randn({outputs, inputs}, options);
    at::Tensor y = at::empty({rows, outputs}, options);
    double best = std::numeric_limits<double>::infinity(), spent = 0;
    for (int repeat = 0; repeat < 3 || (spent < 0.1 && repeat < 100); ++repeat) {
      const auto start = std::chrono::steady_clock::now();
      at::mm_out(y, x, weight.t());
      const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      best = std::min(best, taken);
      spent += taken;
    }
    operations += 2.0 * static_cast<double>(rows * inputs * outputs);
    seconds += best;
  }
  return operations / seconds;
}

double training_flops_a_token(const Decoder& decoder, double loss_share) {
  const auto is_trained = [](const at::Tensor& weight) { return weight.requires_grad(); };
  // Forward, the gradient of the input where something below is trained, the gradient of the weight itself.
  bool below = is_trained(decoder.embedding->weight);
  const auto operations = [&](const at::Tensor& weight) {
    return (2.0 + (below ? 2.0 : 0.0) + (is_trained(weight) ? 2.0 : 0.0)) *
           static_cast<double>(weight.numel());
  };
  double sum = 0;
  for (const auto& block : decoder.blocks) {
    const auto parameters = block->parameters();
    below = below || std::any_of(parameters.begin(), parameters.end(), is_trained);
    for (const auto& parameter : parameters) {
      if (parameter.dim() == 2) sum += operations(parameter);
    }
  }
  return sum + loss_share * operations(decoder.output_weight());
}

}  // namespace calque

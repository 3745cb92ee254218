#include "calque/train/matrix_speed.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

namespace calque {

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

MatrixSpeed::MatrixSpeed(const ModelConfig& config, int64_t rows, at::ScalarType type) {
  const auto options = at::TensorOptions().dtype(type);
  const int64_t queries = config.heads * config.width_of_head(),
                keys_values = 2 * config.key_value_head_count() * config.width_of_head(),
                up = config.feed_forward_width * (config.is_gated() ? 2 : 1);
  const std::pair<int64_t, int64_t> shapes[] = {{config.width, queries + keys_values},
                                                {queries, config.width},
                                                {config.width, up},
                                                {config.feed_forward_width, config.width}};
  for (const auto& [inputs, outputs] : shapes) {
    products_.push_back({at::randn({rows, inputs}, options), at::randn({outputs, inputs}, options),
                         at::empty({rows, outputs}, options), std::numeric_limits<double>::infinity()});
    operations_ += 2.0 * static_cast<double>(rows * inputs * outputs);
  }
}

void MatrixSpeed::sample() {
  const at::NoGradGuard no_gradients;
  const at::RecordFunctionGuard unrecorded(false);  // who times the parts of a training should not see these
  seconds_ += seconds_of([&] {
    for (Product& product : products_) {
      const auto multiply = [&] { at::mm_out(product.y, product.x, product.weight.t()); };
      multiply();
      for (int i = 0; i < 2; ++i) {
        const double taken = seconds_of(multiply);
        timed_ += taken;
        product.best = std::min(product.best, taken);
      }
    }
  });
  ++samples_;
}

double MatrixSpeed::best() const {
  double seconds = 0;
  for (const Product& product : products_) seconds += product.best;
  return operations_ / seconds;
}

double measure_matrix_speed(const ModelConfig& config, int64_t rows, at::ScalarType type) {
  MatrixSpeed speed(config, rows, type);
  do speed.sample();
  while (speed.seconds() < 0.4);
  return speed.best();
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

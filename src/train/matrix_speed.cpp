#include "calque/train/matrix_speed.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "calque/kernels/device.h"
#include "calque/kernels/linear.h"

namespace calque {

namespace {

double seconds_of(const at::Device& device, const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  wait_for(device);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

MatrixSpeed::MatrixSpeed(const ModelConfig& config, int64_t rows, const at::TensorOptions& options) {
  const int64_t queries = config.heads * config.head_size_or_default(),
                keys_values = 2 * config.kv_head_count() * config.head_size_or_default(),
                up = config.mlp_size * (config.is_gated() ? 2 : 1);
  const std::pair<int64_t, int64_t> shapes[] = {{config.hidden_size, queries + keys_values},
                                                {queries, config.hidden_size},
                                                {config.hidden_size, up},
                                                {config.mlp_size, config.hidden_size}};
  const at::NoGradGuard no_gradients;
  const at::RecordFunctionGuard unrecorded(false);  // not part of what PartTimes measures
  for (const auto& [inputs, outputs] : shapes) {
    const Product libtorch{at::randn({rows, inputs}, options), at::randn({outputs, inputs}, options),
                           at::empty({rows, outputs}, options)};
    const Product ours{libtorch.x, libtorch.weight, at::empty({rows, outputs}, options.dtype(at::kFloat)),
                       /*is_ours=*/true};
    const auto seconds = [](const Product& product) {
      const at::Device device = product.x.device();
      multiply(product);
      wait_for(device);
      return seconds_of(device, [&] { multiply(product); });
    };
    products_.push_back(seconds(ours) < seconds(libtorch) ? ours : libtorch);
    operations_ += 2.0 * static_cast<double>(rows * inputs * outputs);
  }
}

void MatrixSpeed::multiply(const Product& product) {
  at::Tensor y = product.y;
  if (product.is_ours) {
    matrix_product_into(y, product.x, product.weight.t());
  } else {
    at::mm_out(y, product.x, product.weight.t());
  }
}

void MatrixSpeed::sample() {
  const at::NoGradGuard no_gradients;
  const at::RecordFunctionGuard unrecorded(false);  // not part of what PartTimes measures
  const at::Device device = products_.front().x.device();
  seconds_ += seconds_of(device, [&] {
    for (Product& product : products_) {
      multiply(product);
      wait_for(device);
      for (int i = 0; i < 2; ++i) {
        const double taken = seconds_of(device, [&] { multiply(product); });
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

double measure_matrix_speed(const ModelConfig& config, int64_t rows, const at::TensorOptions& options) {
  MatrixSpeed speed(config, rows, options);
  do speed.sample();
  while (speed.seconds() < 0.4);
  return speed.best();
}

double training_flops_per_token(const Decoder& decoder, double loss_share) {
  const auto is_trained = [](const at::Tensor& tensor) { return tensor.requires_grad(); };
  bool trained_below = is_trained(decoder.embedding->weight);
  // Forward, the gradient of the input where something below is trained, and the gradient of the weight
  // itself.
  const auto flops = [&](int64_t weights, bool trained) {
    return (2.0 + (trained_below ? 2.0 : 0.0) + (trained ? 2.0 : 0.0)) * static_cast<double>(weights);
  };
  double sum = 0;
  for (const auto& block : decoder.blocks) {
    const auto parameters = block->parameters();
    trained_below = trained_below || std::any_of(parameters.begin(), parameters.end(), is_trained);
    for (const Block::Matrix& matrix : block->matrices()) {
      const Linear& linear = *matrix.linear;
      sum += flops(linear.inputs() * linear.outputs(), linear.is_trained());
      if (linear.adapter) sum += flops(linear.adapter->down.numel() + linear.adapter->up.numel(), true);
    }
  }
  return sum + loss_share * flops(decoder.output_weight().numel(), is_trained(decoder.output_weight()));
}

}  // namespace calque

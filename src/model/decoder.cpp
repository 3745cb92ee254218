#include "calque/model/decoder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <cmath>

#include "calque/base/hash.h"

namespace calque {

Decoder::Decoder(const ModelConfig& config) : config_(config) {
  check_model(config);
  embedding = register_module("embedding", std::make_shared<Embedding>(config));
  for (int64_t i = 0; i < config.layers; ++i) {
    blocks.push_back(register_module("block_" + std::to_string(i), std::make_shared<Block>(config)));
  }
  norm = register_module("norm", std::make_shared<Norm>(config));
  if (!config.tied) output = register_parameter("output", torch::empty({config.vocabulary, config.width}));
  if (config.positions == PositionKind::rotary) {
    const RotaryTable table =
        make_rotary_table(config.max_positions, config.width_of_head(), config.rotary_base);
    cosines_ = register_buffer("rotary_cosines", table.cosines);
    sines_ = register_buffer("rotary_sines", table.sines);
  }
}

torch::Tensor Decoder::run(const torch::Tensor& tokens, const Pass& pass) const {
  const Layout& layout = pass.layout;
  const Layout all = ask_for_all(layout);
  const RotaryTable table{cosines_, sines_};
  const RotaryTable* rotary = cosines_.defined() ? &table : nullptr;
  auto x = embedding->forward(tokens, {all, pass.tap});  // [rows, width]
  for (size_t i = 0; i < blocks.size(); ++i) {
    const bool last = i + 1 == blocks.size();
    const Pass whole{last ? layout : all, pass.tap, pass.cache, static_cast<int64_t>(i)};
    x = blocks[i]->forward(x, whole.inside("blocks." + std::to_string(i)),
                           rotary);  // [rows or queries, width]
  }
  return pass.show("norm", norm->forward(x));  // [queries, width]
}

torch::Tensor Decoder::hidden(const torch::Tensor& tokens, const Layout& layout, const Tap* tap) const {
  return run(tokens, {layout, tap});
}

torch::Tensor Decoder::logits(const torch::Tensor& tokens, const Layout& layout,
                              const CachePass& cache) const {
  return torch::linear(run(tokens, {layout, nullptr, &cache}), output_weight());  // [queries, vocabulary]
}

torch::Tensor Decoder::logits(const torch::Tensor& tokens, const Layout& layout, const Tap* tap) const {
  return Pass{layout, tap}.show(
      "logits", torch::linear(hidden(tokens, layout, tap), output_weight()));  // [queries, vocabulary]
}

OutputLoss Decoder::loss(const torch::Tensor& tokens, const Layout& layout, const torch::Tensor& labels,
                         double smoothing) const {
  return output_loss(hidden(tokens, layout), output_weight(), labels, smoothing);
}

void Decoder::initialise(uint64_t seed) {
  const torch::NoGradGuard no_gradients;
  const double deviation = 0.02, residual = deviation / std::sqrt(2.0 * static_cast<double>(config_.layers));
  uint64_t drawn = 0;
  // Every tensor from a generator of its own: adding one changes no other.
  const auto draw = [&](torch::Tensor& tensor, double spread) {
    if (!tensor.defined()) return;
    auto generator = at::make_generator<at::CPUGeneratorImpl>(mix(seed, drawn++));
    tensor.normal_(0.0, spread, generator);
  };
  draw(embedding->weight, deviation);
  if (config_.positions == PositionKind::learned) draw(embedding->positions, deviation);
  draw(output, deviation);
  for (const auto& block : blocks) {
    draw(block->attention->qkv->weight, deviation);
    draw(block->attention->output->weight, residual);
    draw(block->feed_forward->up->weight, deviation);
    draw(block->feed_forward->down->weight, residual);
  }
}

int64_t Decoder::parameter_count() const {
  int64_t count = 0;
  for (const auto& parameter : parameters()) count += parameter.numel();
  return count;
}

}  // namespace calque

#include "calque/model/decoder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "calque/base/hash.h"
#include "calque/model/recompute.h"

namespace calque {

namespace {

// True if a gradient passes the block; one below all that is trained has nothing to compute again.
bool learns(const Block& block, const torch::Tensor& x) {
  const auto parameters = block.parameters();
  return x.requires_grad() || std::any_of(parameters.begin(), parameters.end(),
                                          [](const torch::Tensor& one) { return one.requires_grad(); });
}

}  // namespace

Decoder::Decoder(const ModelConfig& config) : config_(config) {
  check_model(config);
  embedding = register_module("embedding", std::make_shared<Embedding>(config));
  for (int64_t i = 0; i < config.layers; ++i) {
    blocks.push_back(register_module("block_" + std::to_string(i), std::make_shared<Block>(config, i)));
  }
  norm = register_module("norm", std::make_shared<Norm>(config, config.width));
  if (!config.tied) output = register_parameter("output", torch::empty({config.vocabulary, config.width}));
  if (config.positions == PositionKind::rotary) rotary_ = add_rotary_table("rotary", config.rotary_base);
  if (config.window > 0) window_rotary_ = add_rotary_table("window_rotary", config.window_rotary_base);
}

// A table's tensors are buffers, so that they move with the model.
RotaryTable Decoder::add_rotary_table(const std::string& name, double base) {
  const RotaryTable table = make_rotary_table(config_.max_positions, config_.width_of_head(), base);
  return {register_buffer(name + "_cosines", table.cosines), register_buffer(name + "_sines", table.sines)};
}

torch::Tensor Decoder::run(const torch::Tensor& tokens, const Pass& pass) const {
  const Layout& layout = pass.layout;
  const Layout all = ask_for_all(layout);
  auto x = embedding->forward(tokens, {all, pass.tap});  // [rows, width]
  for (size_t i = 0; i < blocks.size(); ++i) {
    const bool last = i + 1 == blocks.size();
    const auto layer = static_cast<int64_t>(i);
    const RotaryTable* rotary = rotary_of_layer(layer);
    if (recompute && torch::GradMode::is_enabled() && learns(*blocks[i], x)) {
      // The backward pass comes when this function's own layouts are gone.
      x = recomputed(
          [block = blocks[i], asked = last ? layout : all, layer, rotary](const torch::Tensor& input) {
            return block->forward(input, {asked, nullptr, nullptr, layer}, rotary);
          },
          x);
      continue;
    }
    const Pass whole{last ? layout : all, pass.tap, pass.cache, layer};
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
  return output_loss(hidden(tokens, layout), output_weight(), labels, smoothing, half_products_);
}

void Decoder::use_half_products() {
  half_products_ = true;
  for (const auto& block : blocks) {
    for (const auto& [name, linear] : block->matrices()) linear->half_products = true;
  }
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

const RotaryTable* Decoder::rotary_of_layer(int64_t layer) const {
  const RotaryTable& table = config_.has_window(layer) ? window_rotary_ : rotary_;
  return table.cosines.defined() ? &table : nullptr;
}

int64_t Decoder::parameter_count() const {
  int64_t count = 0;
  for (const auto& parameter : parameters()) count += parameter.numel();
  return count;
}

}  // namespace calque

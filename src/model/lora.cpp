#include "calque/model/lora.h"

#include <torch/types.h>

#include <algorithm>

#include "calque/base/hash.h"

namespace calque {

void add_adapters(Decoder& decoder, const AdapterConfig& config, uint64_t seed,
                  WeightPrecision base_precision) {
  for (auto& parameter : decoder.parameters()) parameter.set_requires_grad(false);
  const auto& targets = config.target_modules;
  uint64_t drawn = 0;  // mutate: any number gives another random stream
  for (size_t layer = 0; layer < decoder.blocks.size(); ++layer) {
    for (const Block::Matrix& matrix : decoder.blocks[layer]->matrices()) {
      matrix.linear->freeze(base_precision);
      if (layer < static_cast<size_t>(config.first_layer)) continue;
      if (std::find(targets.begin(), targets.end(), matrix.name) == targets.end()) continue;
      matrix.linear->add_adapter(config.rank, config.scale, config.dropout, mix(seed, 0x10A, drawn++));
    }
  }
}

bool has_adapters(const Decoder& decoder) {
  return std::any_of(decoder.blocks.begin(), decoder.blocks.end(), [](const auto& block) {
    const auto all = block->matrices();
    return std::any_of(all.begin(), all.end(),
                       [](const Block::Matrix& one) { return one.linear->adapter.has_value(); });
  });
}

void pack_adapters(Decoder& decoder) {
  const torch::NoGradGuard no_gradients;
  for (const auto& block : decoder.blocks) {
    for (const Block::Matrix& matrix : block->matrices()) matrix.linear->pack_adapter();
  }
}

std::shared_ptr<Decoder> merge_adapters(const Decoder& decoder) {
  const torch::NoGradGuard no_gradients;
  auto merged = std::make_shared<Decoder>(decoder.config());
  for (const auto& parameter : decoder.named_parameters()) {
    if (torch::Tensor* to = merged->named_parameters().find(parameter.key())) to->copy_(parameter.value());
  }
  for (size_t i = 0; i < decoder.blocks.size(); ++i) {
    const auto from = decoder.blocks[i]->matrices(), to = merged->blocks[i]->matrices();
    for (size_t j = 0; j < from.size(); ++j) to[j].linear->weight.copy_(from[j].linear->merged_weight());
  }
  return merged;
}

}  // namespace calque

#include "calque/model/lora.h"

#include <torch/types.h>

#include <algorithm>

#include "calque/base/hash.h"

namespace calque {

void add_adapters(Decoder& decoder, const AdapterShape& shape, uint64_t seed, Packing base) {
  for (auto& parameter : decoder.parameters()) parameter.set_requires_grad(false);
  uint64_t drawn = 0;
  for (size_t layer = 0; layer < decoder.blocks.size(); ++layer) {
    for (const auto& [name, linear] : decoder.blocks[layer]->matrices()) {
      linear->freeze(base);
      if (layer < static_cast<size_t>(shape.first_layer)) continue;
      if (std::find(shape.matrices.begin(), shape.matrices.end(), name) == shape.matrices.end()) continue;
      linear->add_adapter(shape.rank, shape.scale, shape.dropout, mix(seed, 0x10A, drawn++));
    }
  }
}

bool has_adapters(const Decoder& decoder) {
  return std::any_of(decoder.blocks.begin(), decoder.blocks.end(), [](const auto& block) {
    const auto all = block->matrices();
    return std::any_of(all.begin(), all.end(),
                       [](const Block::NamedLinear& one) { return one.linear->adapter_up.defined(); });
  });
}

std::shared_ptr<Decoder> merge_adapters(const Decoder& decoder) {
  const torch::NoGradGuard no_gradients;
  auto merged = std::make_shared<Decoder>(decoder.config());
  const auto from = decoder.named_parameters();
  for (const auto& parameter : merged->named_parameters()) parameter.value().copy_(from[parameter.key()]);
  for (size_t i = 0; i < decoder.blocks.size(); ++i) {
    const auto old = decoder.blocks[i]->matrices(), fresh = merged->blocks[i]->matrices();
    for (size_t j = 0; j < old.size(); ++j) fresh[j].linear->weight.copy_(old[j].linear->merged_weight());
  }
  return merged;
}

}  // namespace calque

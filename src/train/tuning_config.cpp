#include "calque/train/tuning_config.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/text.h"

namespace calque {

Fields fields(LoraConfig& c) {
  return {
      field("rank", c.rank, between(0, 4096),
            "train two thin matrices of this rank beside each frozen one (Hu et al., 2021); 0: train the "
            "matrices"),
      field("alpha", c.alpha, at_least(0.0),
            "the thin matrices' product is scaled by alpha / rank; 0: 2 · rank"),
      field("dropout", c.dropout, from_below(0.0, 1.0), "of what goes into the thin matrices"),
      field("matrices", c.matrices, "which: qkv and output of attention, up and down of the feed-forward"),
  };
}

Fields fields(TuningConfig& c) {
  return {
      field("init_from", c.init_from,
            "a checkpoint to start from; its architecture and tokenizer are taken over, keys beside it win"),
      section("lora", fields(c.lora), "low-rank adapters for a frozen base"),
      field("freeze_embedding", c.freeze_embedding, "keep the embedding as it was imported"),
      field("freeze_layers", c.freeze_layers, at_least(0),
            "keep so many of the first layers as they were imported; under lora: no adapters there"),
      field("imported_rate", c.imported_rate, above(0.0),
            "learning rate of imported weights, as a share of train.learning_rate"),
      field("layer_decay", c.layer_decay, between(0.0, 1.0),
            "each layer below the last one learns at this share of the rate of the one above it"),
      field(
          "base_precision", c.base_precision,
          "of the frozen weights under lora: bfloat16 takes half the memory, int8 little over half the time"),
  };
}

void check_tuning(const TuningConfig& c) {
  const std::vector<std::string> known = {"qkv", "output", "up", "down"};
  for (const std::string& name : c.lora.matrices) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UserError(
          fmt::format("model.lora.matrices: {}: no such matrix{}", name, did_you_mean(name, known)),
          "they are " + join(known, ", "));
  }
  if (c.init_from.empty()) {
    if (c.lora.rank > 0) throw UserError("model.lora needs a base: set model.init_from");
    if (c.freeze_embedding || c.freeze_layers > 0)
      throw UserError("model.freeze_embedding and model.freeze_layers need a base: set model.init_from");
  }
  if (c.base_precision != Packing::float32 && c.lora.rank == 0) {
    throw UserError(
        "model.base_precision needs model.lora.rank above 0: weights that are trained are kept in float32");
  }
}

}  // namespace calque

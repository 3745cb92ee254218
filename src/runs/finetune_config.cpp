#include "calque/runs/finetune_config.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/text.h"

namespace calque {

Fields fields(LoraConfig& c) {
  return {
      field("rank", c.rank, between(0, 4096),
            "rank of the LoRA adapters (Hu et al., 2021); 0: no adapters, train the weights themselves"),
      field("alpha", c.alpha, at_least(0.0), "the adapters are scaled by alpha / rank; 0: 2 * rank"),
      field("dropout", c.dropout, from_below(0.0, 1.0), "dropout probability of the adapters' input"),
      field("target_modules", c.target_modules,
            "matrices with adapters: qkv and output of attention, up and down of the MLP")
          .formerly("matrices"),
  };
}

Fields fields(FinetuneConfig& c) {
  return {
      field("init_embeddings", c.init_embeddings,
            "what token embeddings start from: random numbers, or cooccurrence: which tokens of data.train "
            "occur "
            "together, so that words and their translations start out similar"),
      field("init_from", c.init_from,
            "checkpoint to start from, with its architecture and tokenizer; other keys of this section "
            "override the architecture"),
      section("lora", fields(c.lora), "low-rank adapters on a frozen base model"),
      field("freeze_embeddings", c.freeze_embeddings, "do not train the imported embeddings")
          .formerly("freeze_embedding"),
      field("freeze_layers", c.freeze_layers, at_least(0),
            "do not train this many of the first layers; with lora: no adapters there"),
      field("base_lr_scale", c.base_lr_scale, above(0.0),
            "learning rate of imported weights, as a fraction of train.learning_rate")
          .formerly("imported_rate"),
      field("layer_lr_decay", c.layer_lr_decay, between(0.0, 1.0),
            "layer-wise learning rate decay: each layer's rate is this times the rate of the one above")
          .formerly("layer_decay"),
      field("base_precision", c.base_precision,
            "storage of the frozen weights below adapters: bfloat16 halves the memory, int8 nearly halves "
            "the time"),
  };
}

void check_finetune(const FinetuneConfig& c) {
  const std::vector<std::string> known = {"qkv", "output", "up", "down"};
  for (const std::string& name : c.lora.target_modules) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UserError(
          fmt::format("model.lora.target_modules: {}: no such matrix{}", name, did_you_mean(name, known)),
          "they are " + join(known, ", "));
  }
  if (c.lora.rank > 0 && c.lora.target_modules.empty())
    throw UserError("model.lora.target_modules is empty, so nothing would be trained",
                    "name some of " + join(known, ", "));
  if (!c.init_from.empty() && c.init_embeddings != InitialEmbeddings::random)
    throw UserError("model.init_embeddings and model.init_from exclude each other",
                    "the base model has embeddings: leave model.init_embeddings out");
  if (c.init_from.empty()) {
    if (c.lora.rank > 0) throw UserError("model.lora needs a base model: set model.init_from");
    if (c.freeze_embeddings || c.freeze_layers > 0)
      throw UserError(
          "model.freeze_embeddings and model.freeze_layers need a base model: set model.init_from");
  }
  if (c.base_precision != WeightPrecision::float32 && c.lora.rank == 0) {
    throw UserError(
        "model.base_precision needs model.lora.rank above 0: weights that are trained are stored in float32");
  }
}

}  // namespace calque

// FinetuneConfig: what weights a run starts from, and how an imported model is fine-tuned; keys of the
// `model` section beside the model's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "calque/base/field.h"
#include "calque/kernels/weight_precision.h"

namespace calque {

struct LoraConfig {
  int64_t rank = 0;
  double alpha = 0;
  double dropout = 0;
  std::vector<std::string> target_modules = {"qkv", "output", "up", "down"};

  double scale() const {
    return (alpha > 0 ? alpha : 2.0 * static_cast<double>(rank)) / static_cast<double>(rank);
  }
};
Fields fields(LoraConfig& config);

enum class InitialEmbeddings { random, cooccurrence };
template <>
struct EnumNames<InitialEmbeddings> {
  static constexpr std::string_view names[] = {"random", "cooccurrence"};
};

struct FinetuneConfig {
  InitialEmbeddings init_embeddings = InitialEmbeddings::random;
  std::filesystem::path init_from;
  LoraConfig lora;
  bool freeze_embeddings = false;
  int64_t freeze_layers = 0;
  double base_lr_scale = 1;
  double layer_lr_decay = 1;
  WeightPrecision base_precision = WeightPrecision::float32;
};
Fields fields(FinetuneConfig& config);

// Refuses contradictions, naming the keys.
void check_finetune(const FinetuneConfig& config);

}  // namespace calque

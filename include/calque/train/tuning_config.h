// TuningConfig: how an imported model is trained on; keys of the `model` section beside the model's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "calque/base/field.h"
#include "calque/kernels/packing.h"

namespace calque {

struct LoraConfig {
  int64_t rank = 0;
  double alpha = 0;
  double dropout = 0;
  std::vector<std::string> matrices = {"qkv", "output", "up", "down"};

  double scale() const {
    return (alpha > 0 ? alpha : 2.0 * static_cast<double>(rank)) / static_cast<double>(rank);
  }
};
Fields fields(LoraConfig& config);

struct TuningConfig {
  std::filesystem::path init_from;
  LoraConfig lora;
  bool freeze_embedding = false;
  int64_t freeze_layers = 0;
  double imported_rate = 1;
  double layer_decay = 1;
  Packing base_precision = Packing::float32;
};
Fields fields(TuningConfig& config);

// Refuses what contradicts itself, naming the keys.
void check_tuning(const TuningConfig& config);

}  // namespace calque

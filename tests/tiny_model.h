// The small model that tests use: it builds in no time, and its heads share keys and values in groups.
#pragma once

#include <vector>

#include "calque/model/decoder.h"

namespace calque {

inline ModelConfig tiny_config(int64_t vocabulary = 40) {
  ModelConfig config;
  config.layers = 2;
  config.hidden_size = 16;
  config.heads = 4;
  config.kv_heads = 2;
  config.mlp_size = 24;
  config.context_length = 64;
  config.vocabulary = vocabulary;
  return config;
}

// One of each architecture that is known by name, and others that only our own format can express.
inline std::vector<ModelConfig> every_kind() {
  std::vector<ModelConfig> all(12, tiny_config());
  for (size_t i = 1; i < 6; ++i) all[i].architecture = Architecture::calque;
  all[1].norm = NormKind::layer;
  all[1].bias = true;
  all[2].positions = PositionKind::learned;
  all[2].activation = Activation::gelu;
  all[3].positions = PositionKind::sinusoidal;
  all[3].activation = Activation::relu;
  all[4].activation = Activation::geglu;
  all[4].tied_embeddings = false;
  all[5].sliding_window = 4;
  all[5].layer_types = {LayerType::full_attention, LayerType::sliding_attention};
  all[6].attention = AttentionKind::causal;
  all[6].head_size = 6;
  all[7].kv_heads = 0;
  apply_architecture(all[7], Architecture::gpt2);
  apply_architecture(all[8], Architecture::qwen2);
  all[8].kv_heads = 1;
  apply_architecture(all[9], Architecture::qwen3);
  all[10].sliding_window = 4;
  all[10].layer_types = {LayerType::sliding_attention, LayerType::full_attention};
  apply_architecture(all[10], Architecture::gemma3);
  all[10].attention = AttentionKind::causal;
  all[11].target_positions = TargetPositions::restart;
  all[11].embedding_shortcut = true;
  return all;
}

inline std::shared_ptr<Decoder> make_decoder(const ModelConfig& config, uint64_t seed = 1) {
  auto decoder = std::make_shared<Decoder>(config);
  decoder->initialise(seed);
  const torch::NoGradGuard no_gradients;
  if (decoder->embedding_shortcut.defined())  // zero at first
    decoder->embedding_shortcut.copy_(torch::linspace(-0.5, 0.7, config.layers));
  decoder->eval();
  return decoder;
}

}  // namespace calque

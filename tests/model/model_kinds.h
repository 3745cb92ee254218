// Tiny models of every kind that a ModelConfig can describe.
#pragma once

#include <vector>

#include "calque/model/model_config.h"

namespace calque {

inline ModelConfig tiny_config() {
  ModelConfig config;
  config.layers = 2;
  config.width = 16;
  config.heads = 4;
  config.key_value_heads = 2;
  config.feed_forward_width = 24;
  config.max_positions = 64;
  config.vocabulary = 40;
  return config;
}

inline std::vector<ModelConfig> every_kind() {
  std::vector<ModelConfig> all(9, tiny_config());
  all[1].norm = NormKind::layer;
  all[1].bias = true;
  all[2].positions = PositionKind::learned;
  all[2].feed_forward = FeedForwardKind::gelu;
  all[3].positions = PositionKind::sinusoidal;
  all[3].feed_forward = FeedForwardKind::relu;
  all[4].feed_forward = FeedForwardKind::geglu;
  all[4].tied = false;
  all[5].attention = AttentionKind::causal;
  all[6].head_width = 6;
  all[7].qkv_bias = true;
  all[7].key_value_heads = 1;
  all[8].norm = NormKind::rms_plus_one;  // Gemma 3
  all[8].head_norms = all[8].outer_norms = all[8].scaled_embedding = true;
  all[8].feed_forward = FeedForwardKind::geglu;
  all[8].window = 4;
  all[8].window_period = 2;
  all[8].attention = AttentionKind::causal;
  return all;
}

}  // namespace calque

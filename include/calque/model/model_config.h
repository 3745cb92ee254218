// ModelConfig: what a decoder is made of; the `model` section of a configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calque/model/architecture.h"

namespace calque {

enum class ModelSize { none, tiny, small, base };
enum class AttentionKind { prefix, causal };
enum class TargetPositions { continue_source, restart };
enum class LayerType { full_attention, sliding_attention };

template <>
struct EnumNames<ModelSize> {
  static constexpr std::string_view names[] = {"none", "tiny", "small", "base"};
};
template <>
struct EnumNames<AttentionKind> {
  static constexpr std::string_view names[] = {"prefix", "causal"};
};
template <>
struct EnumNames<TargetPositions> {
  static constexpr std::string_view names[] = {"continue", "restart"};
};
template <>
struct EnumNames<LayerType> {
  static constexpr std::string_view names[] = {"full_attention", "sliding_attention"};
};

struct ModelConfig {
  Architecture architecture = Architecture::llama;
  ModelSize size = ModelSize::none;
  int64_t layers = 6;
  int64_t hidden_size = 256;
  int64_t heads = 4;
  int64_t kv_heads = 0;   // 0: as many as heads
  int64_t head_size = 0;  // 0: hidden_size / heads
  Activation activation = Activation::swiglu;
  int64_t mlp_size = 768;
  NormKind norm = NormKind::rms;
  double norm_epsilon = 1e-5;
  PositionKind positions = PositionKind::rope;
  int64_t context_length = 512;
  double rope_theta = 10000;
  int64_t sliding_window = 0;               // of the sliding_attention layers
  std::vector<LayerType> layer_types = {};  // repeated over the layers; empty: full attention everywhere
  double rope_local_theta = 10000;          // of the sliding_attention layers
  bool qk_norm = false;
  bool post_norm = false;
  bool scale_embeddings = false;
  bool bias = false;
  bool qkv_bias = false;
  bool tied_embeddings = true;
  AttentionKind attention = AttentionKind::prefix;
  TargetPositions target_positions = TargetPositions::continue_source;
  bool embedding_shortcut = false;
  std::string prompt = {};
  double dropout = 0;

  int64_t vocabulary = 0;  // the tokenizer's, not a key of its own

  int64_t kv_head_count() const { return kv_heads > 0 ? kv_heads : heads; }
  int64_t head_size_or_default() const { return head_size > 0 ? head_size : hidden_size / heads; }
  bool slides(int64_t layer) const {
    return !layer_types.empty() &&
           layer_types[static_cast<size_t>(layer) % layer_types.size()] == LayerType::sliding_attention;
  }
  bool is_gated() const { return activation == Activation::swiglu || activation == Activation::geglu; }
  bool is_prefix() const { return attention == AttentionKind::prefix; }
  bool restarts_positions() const { return target_positions == TargetPositions::restart; }
  // Whether its architecture has options beyond those of the family that it is named after.
  bool extends_family() const { return is_prefix() || restarts_positions() || embedding_shortcut; }
};
Fields fields(ModelConfig& config);

// Gives every option that the architecture fixes its value.
void apply_architecture(ModelConfig& config, Architecture architecture);

// Refuses what cannot be built, naming the keys in conflict.
void check_model(const ModelConfig& config);

// Weights in the matrix products of one token. The embedding is a look-up and does not count; the output
// matrix counts for the rows that carry loss. Training takes six FLOPs for each.
int64_t block_weights(const ModelConfig& config);  // of all blocks together
int64_t output_weights(const ModelConfig& config);

}  // namespace calque

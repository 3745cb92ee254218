// ModelConfig: what a decoder is made of. Its options cover our own models, Llama, GPT-2, Qwen and Gemma 3.
#pragma once

#include <cstdint>
#include <string>

#include "calque/base/field.h"

namespace calque {

enum class ModelSize { none, tiny, small, base };
enum class NormKind { rms, layer, rms_plus_one };
enum class PositionKind { rotary, learned, sinusoidal };
enum class FeedForwardKind { swiglu, geglu, gelu, relu };
enum class AttentionKind { prefix, causal };

template <>
struct EnumNames<ModelSize> {
  static constexpr std::string_view names[] = {"none", "tiny", "small", "base"};
};
template <>
struct EnumNames<NormKind> {
  static constexpr std::string_view names[] = {"rms", "layer", "rms_plus_one"};
};
template <>
struct EnumNames<PositionKind> {
  static constexpr std::string_view names[] = {"rotary", "learned", "sinusoidal"};
};
template <>
struct EnumNames<FeedForwardKind> {
  static constexpr std::string_view names[] = {"swiglu", "geglu", "gelu", "relu"};
};
template <>
struct EnumNames<AttentionKind> {
  static constexpr std::string_view names[] = {"prefix", "causal"};
};

struct ModelConfig {
  ModelSize size = ModelSize::none;
  int64_t layers = 6;
  int64_t width = 256;
  int64_t heads = 4;
  int64_t key_value_heads = 0;  // 0: as many as heads
  int64_t head_width = 0;       // 0: width / heads
  FeedForwardKind feed_forward = FeedForwardKind::swiglu;
  int64_t feed_forward_width = 768;
  NormKind norm = NormKind::rms;
  double norm_epsilon = 1e-5;
  PositionKind positions = PositionKind::rotary;
  int64_t max_positions = 512;
  double rotary_base = 10000;
  int64_t window = 0;         // 0: every layer sees everything
  int64_t window_period = 6;  // each so-many-th layer has no window
  double window_rotary_base = 10000;
  bool head_norms = false;
  bool outer_norms = false;
  bool scaled_embedding = false;
  bool bias = false;
  bool qkv_bias = false;
  bool tied = true;
  AttentionKind attention = AttentionKind::prefix;
  std::string prompt;
  double dropout = 0;

  int64_t vocabulary = 0;  // the tokenizer's, not a key of its own

  int64_t key_value_head_count() const { return key_value_heads > 0 ? key_value_heads : heads; }
  int64_t width_of_head() const { return head_width > 0 ? head_width : width / heads; }
  bool has_window(int64_t layer) const { return window > 0 && (layer + 1) % window_period != 0; }
  bool is_gated() const {
    return feed_forward == FeedForwardKind::swiglu || feed_forward == FeedForwardKind::geglu;
  }
};
Fields fields(ModelConfig& config);

// Refuses what cannot be built, naming the keys in conflict.
void check_model(const ModelConfig& config);

// Weights that a token passes through: the embedding is a look-up and does not count, the output matrix does
// for rows that carry loss. Nominal FLOPs of training are six for each.
int64_t block_weights(const ModelConfig& config);  // of all blocks
int64_t output_weights(const ModelConfig& config);

}  // namespace calque

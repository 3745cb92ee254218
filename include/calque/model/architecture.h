// Architecture: the families of models that are known by name, and what sets each apart, in one table.
// `calque` is our own format, which takes any combination of options.
#pragma once

#include <span>

#include "calque/base/field.h"

namespace calque {

enum class Architecture { llama, gpt2, qwen2, qwen3, gemma3, calque };
enum class NormKind { rms, layer, rms_plus_one };
enum class PositionKind { rope, learned, sinusoidal };
enum class Activation { swiglu, geglu, gelu, relu };

template <>
struct EnumNames<Architecture> {
  static constexpr std::string_view names[] = {"llama", "gpt2", "qwen2", "qwen3", "gemma3", "calque"};
};
template <>
struct EnumNames<NormKind> {
  static constexpr std::string_view names[] = {"rms", "layer", "rms_plus_one"};
};
template <>
struct EnumNames<PositionKind> {
  static constexpr std::string_view names[] = {"rope", "learned", "sinusoidal"};
};
template <>
struct EnumNames<Activation> {
  static constexpr std::string_view names[] = {"swiglu", "geglu", "gelu", "relu"};
};

enum class Fixed { yes, no, free };  // whether an option is on, off, or the configuration's choice
enum class WeightNames { llama, gpt2, own };

struct ArchitectureTraits {
  Architecture architecture;
  const char* model_type;  // of Hugging Face's config.json
  const char* class_name;  // of transformers
  WeightNames weight_names;
  NormKind norm;
  PositionKind positions;
  Activation activation;
  Fixed bias, qkv_bias, qk_norm, post_norm, scale_embeddings, tied_embeddings, sliding_window;
  int64_t default_head_size;  // where config.json does not say it; 0: hidden_size / heads
};

std::span<const ArchitectureTraits> architectures();                     // all but `calque`
const ArchitectureTraits* find_architecture(Architecture architecture);  // null for `calque`

}  // namespace calque

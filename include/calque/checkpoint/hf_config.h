// Hugging Face's config.json: a ModelConfig written for transformers and read back.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "calque/model/model_config.h"

namespace calque {

// Models of long contexts name millions of positions; a RoPE table of that size would be built for nothing.
inline constexpr int64_t max_rope_positions = 8192;

nlohmann::json hf_config(const ModelConfig& config);
// All options of a model by their configuration keys, with defaults resolved.
nlohmann::json describe_model(const ModelConfig& config);
// name: the file's name, for error messages. What config.json cannot express (dropout) keeps its default.
ModelConfig read_hf_config(const nlohmann::json& json, const std::string& name);

}  // namespace calque

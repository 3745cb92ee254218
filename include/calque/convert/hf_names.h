// Hugging Face's names for a decoder's weights, and its config.json. A model that is a Llama, GPT-2, Qwen or
// Gemma 3 by its options is saved as one, so that `transformers` opens it; any other is saved under our own
// names.
#pragma once

#include <torch/types.h>

#include <nlohmann/json.hpp>
#include <string>

#include "calque/convert/safetensors.h"
#include "calque/model/decoder.h"

namespace calque {

enum class Architecture { llama, gpt2, qwen2, qwen3, gemma3, calque };
Architecture architecture_of(const ModelConfig& config);

// Every weight under its outside name, as a view into the decoder's own tensor: what is read from a view can
// be written to a file, what is copied into it becomes the decoder's.
NamedTensors hf_views(const Decoder& decoder);

nlohmann::json hf_config(const ModelConfig& config);
// What a model is made of, by the names of its keys.
nlohmann::json describe_model(const ModelConfig& config);
// `name` stands for the file in messages. What a config.json cannot say (dropout) keeps its default.
ModelConfig read_hf_config(const nlohmann::json& json, const std::string& name);

// Refuses sizes that need more weights than there are, before anything of that size is made.
void check_weight_count(const ModelConfig& config, int64_t weights, const std::string& name);

// Copies a file's tensors into the decoder; a missing, surplus or misshapen one is named with both shapes.
void load_weights(const Decoder& decoder, const Safetensors& file, const std::string& name);

}  // namespace calque

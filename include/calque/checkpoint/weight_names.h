// The names of a decoder's weights in Hugging Face's checkpoints. Architectures that transformers does not
// know are saved under our own names.
#pragma once

#include <torch/types.h>

#include <string>

#include "calque/checkpoint/safetensors.h"
#include "calque/model/decoder.h"

namespace calque {

// Every weight under its checkpoint name, as a view of the decoder's own tensor: read from a view to save
// the weight, copy into it to load the weight.
NamedTensors weight_views(const Decoder& decoder);

// Throws a UserError if the configuration needs far more weights than the file has, before they are
// allocated.
void check_weight_count(const ModelConfig& config, int64_t weights, const std::string& name);

// Copies a file's tensors into the decoder. A missing, unexpected or misshapen tensor is a UserError that
// names it, with both shapes.
void load_weights(const Decoder& decoder, const Safetensors& file, const std::string& name);

}  // namespace calque

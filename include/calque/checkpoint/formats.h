// The model formats: each can be opened as an ImportSource, and GGUF can also be written.
#pragma once

#include <filesystem>

#include "calque/checkpoint/import_source.h"
#include "calque/checkpoint/safetensors.h"
#include "calque/data/tokenizer.h"

namespace calque {

ImportSource open_hf_folder(const std::filesystem::path& folder);
ImportSource open_gguf(const std::filesystem::path& file);
ImportSource open_llama2c(const std::filesystem::path& file);
bool is_llama2c(const std::filesystem::path& file);

// Export to GGUF: whether llama.cpp supports such a model, the weights under llama.cpp's names and in its
// layouts, and the metadata of the model and its tokenizer.
bool has_gguf_form(const ModelConfig& config);
NamedTensors gguf_tensors(const Decoder& decoder);
nlohmann::ordered_json gguf_metadata(const ModelConfig& config, const Tokenizer& tokenizer,
                                     const std::string& name);

// Converts a tokenizer file (SentencePiece, tokenizer.json, or llama2.c's .bin) to the bytes that
// Tokenizer::from_bytes reads. begin, end: the <s> and </s> ids for a tokenizer.json, which does not contain
// them; -1 if unknown.
std::string convert_tokenizer(const std::filesystem::path& file, int64_t begin, int64_t end);

// The row order of query and key matrices depends on the form of RoPE. llama.cpp (Llama) and llama2.c rotate
// neighbouring rows of a head (interleaved). Hugging Face rotates row i with row i + head_size / 2
// (half-split).
torch::Tensor interleaved_to_half_split(const torch::Tensor& rows, int64_t heads);
torch::Tensor half_split_to_interleaved(const torch::Tensor& rows, int64_t heads);

}  // namespace calque

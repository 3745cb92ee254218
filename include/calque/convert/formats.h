// The formats that models come in, each turned into an ImportSource.
#pragma once

#include <filesystem>

#include "calque/convert/import_source.h"
#include "calque/convert/safetensors.h"
#include "calque/data/tokenizer.h"

namespace calque {

ImportSource open_hf_folder(const std::filesystem::path& folder);
ImportSource open_gguf(const std::filesystem::path& file);
ImportSource open_llama2c(const std::filesystem::path& file);
bool is_llama2c(const std::filesystem::path& file);

// The other way, for llama.cpp: whether it knows models of this kind, the weights as it names and keeps them,
// and what its files say of a model and its tokenizer.
bool has_gguf_form(const ModelConfig& config);
NamedTensors gguf_tensors(const Decoder& decoder);
nlohmann::ordered_json gguf_metadata(const ModelConfig& config, const Tokenizer& tokenizer,
                                     const std::string& name);

// A tokenizer file of any kind that is read here (SentencePiece, tokenizer.json, llama2.c's .bin) as one of
// ours. `end` and `begin`: ids for a tokenizer.json, which does not say them; -1 where not known.
std::string convert_tokenizer(const std::filesystem::path& file, int64_t begin, int64_t end);

// Rows of a query or key matrix whose heads turn neighbouring rows, put as Hugging Face has them: each head's
// first halves, then its second halves.
torch::Tensor halves_apart(const torch::Tensor& rows, int64_t heads);
torch::Tensor neighbours_together(const torch::Tensor& rows, int64_t heads);  // and back

}  // namespace calque

// ImportSource: a model that others trained, opened for reading: what it is, its weights under Hugging Face's
// names, its tokenizer. Which format a file or folder has is seen from its content.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calque/model/decoder.h"

namespace calque {

struct ImportedTensor {
  std::vector<int64_t> shape;
  std::string stored_as;                // its name and type in the file
  std::function<torch::Tensor()> read;  // in the order and layout of Hugging Face's
};

struct ImportSource {
  std::string format;  // «Hugging Face folder», «GGUF file», «llama2.c file»
  std::string architecture;
  ModelConfig config;
  std::map<std::string, ImportedTensor> tensors;  // by Hugging Face's name
  std::optional<std::string> tokenizer;           // the bytes of its file; nothing where there is none
  std::string tokenizer_kind = "none";
  std::vector<std::string> problems;  // why it cannot be imported; empty if it can
};

// `tokenizer`: a file that is taken instead of what comes with the model; may be empty. Headers only are
// read. What is no model at all is a UserError; one that is not supported is told in `problems`.
ImportSource open_import_source(const std::filesystem::path& path,
                                const std::filesystem::path& tokenizer = {});

// The model with its weights. A missing, surplus or misshapen tensor is a UserError with both shapes.
std::shared_ptr<Decoder> load_decoder(const ImportSource& source);

// The same weights and a tokenizer with fewer pieces: what encoding `lines` needs, bytes and control pieces.
// The logits of the pieces that stay are the same.
struct PrunedVocabulary {
  std::string tokenizer;
  std::vector<int64_t> kept;  // old ids, in order
};
using LinesOfText = std::function<bool(std::string& line)>;
PrunedVocabulary prune_vocabulary(const std::string& tokenizer, const LinesOfText& lines);
std::shared_ptr<Decoder> keep_rows(const Decoder& decoder, const std::vector<int64_t>& kept);

}  // namespace calque

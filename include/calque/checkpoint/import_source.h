// ImportSource: a pretrained model, opened for reading: its configuration, its weights under Hugging Face's
// names, and its tokenizer. The format of a file or folder is detected from its content.
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
  std::string stored_as;                // name and type in the file
  std::function<torch::Tensor()> read;  // in Hugging Face's layout
};

struct ImportSource {
  std::filesystem::path path;  // for error messages
  std::string format;          // "Hugging Face folder", "GGUF file", "llama2.c file, version 1"
  std::string architecture;
  ModelConfig config;
  std::map<std::string, ImportedTensor> tensors;  // by Hugging Face's name
  std::optional<std::string> tokenizer;           // the bytes of its file; nullopt if there is none
  std::string tokenizer_kind = "none";
  std::vector<std::string> problems;  // why it cannot be imported; empty if it can
};

// Reads only the headers. tokenizer: a file that replaces the model's own tokenizer; may be empty. Throws a
// UserError if the path is not a model. If it is an unsupported model, the reasons are in `problems`.
ImportSource open_import_source(const std::filesystem::path& path,
                                const std::filesystem::path& tokenizer = {});

// The model with its weights. A missing, unexpected or misshapen tensor is a UserError with the shapes.
std::shared_ptr<Decoder> load_decoder(const ImportSource& source);

// Vocabulary pruning: keeps the pieces that encoding `lines` needs, the byte pieces and the special pieces.
// The logits of the kept pieces do not change.
struct PrunedVocabulary {
  std::string tokenizer;
  std::vector<int64_t> kept;  // old ids, ascending
};
using LinesOfText = std::function<bool(std::string& line)>;  // false: no more lines
// `prompt`: the model's, whose pieces are kept too; may be empty.
PrunedVocabulary prune_vocabulary(const std::string& tokenizer, const std::string& prompt,
                                  const LinesOfText& lines);
std::shared_ptr<Decoder> keep_rows(const Decoder& decoder, const std::vector<int64_t>& kept);

}  // namespace calque

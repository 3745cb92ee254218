// Import, inspection and export of models: the calls behind `calque import`, `calque inspect` and
// `calque export`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calque/data/corpus.h"
#include "calque/model/model_config.h"

namespace calque {

struct ImportOptions {
  std::filesystem::path source;
  std::filesystem::path destination;
  std::filesystem::path tokenizer;  // replaces the source's own; may be empty
  Corpus prune_to;                  // keep only the pieces that this corpus needs; empty: keep all
};
struct ImportResult {
  std::string format, architecture, tokenizer;
  ModelConfig model;
  int64_t parameters = 0;
  std::optional<int64_t> pieces_before = {}, parameters_before = {};  // where the vocabulary was pruned

  nlohmann::json to_json() const;
};
// Writes a checkpoint to the destination, which must not exist.
ImportResult import_model(const ImportOptions& options);

struct Inspection {
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    std::string stored;  // its name and type in the file
  };
  std::string format;
  std::optional<std::string> architecture = {}, tokenizer = {};
  std::optional<ModelConfig> model = {};
  std::optional<int64_t> parameters = {};
  std::vector<std::string> problems = {};  // why it cannot be imported
  std::vector<Tensor> tensors = {};

  bool importable() const { return problems.empty(); }
  nlohmann::json to_json() const;
};
// Describes a checkpoint, GGUF, safetensors or llama2.c file; reads only its headers.
Inspection inspect_model(const std::filesystem::path& path);

// The logits of a causal forward pass over these token ids: [ids, vocabulary].
std::vector<std::vector<float>> inspect_logits(const std::filesystem::path& path,
                                               const std::vector<int64_t>& ids);

struct ExportOptions {
  std::filesystem::path checkpoint;
  std::filesystem::path destination;
  std::string format = "hf";  // hf, gguf
  std::string type = "F32";   // of the matrices: F32, F16, BF16 (hf), Q8_0 (gguf)
  bool causal = false;        // export a prefix model as if it were causal
  bool skip_normalization =
      false;  // gguf: accept a tokenizer that normalises text, which llama.cpp does not do
};
struct ExportResult {
  std::string format;
  double largest_logit_difference = 0;  // between the model and what was read back
  int64_t parameters = 0;

  nlohmann::json to_json() const;
};
// Writes the model, reads it back and compares the logits and the token ids of both.
ExportResult export_model(const ExportOptions& options);

}  // namespace calque

// Bringing a model in from elsewhere, looking into one, and taking one out: the calls behind `calque import`,
// `calque inspect` and `calque export`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/data/corpus.h"

namespace calque {

struct ImportOptions {
  std::filesystem::path source;
  std::filesystem::path destination;
  std::filesystem::path tokenizer;  // taken instead of the source's own; may be empty
  Corpus prune_to;                  // keep only the pieces that this corpus needs; empty: keep all
};
// A checkpoint is written to the destination, which must not exist. Gives what was imported, for people.
nlohmann::json import_model(const ImportOptions& options);

// What a checkpoint, GGUF, safetensors or llama2.c file holds, from its headers alone.
nlohmann::json inspect_model(const std::filesystem::path& path);

// The logits of every position of a causal pass over these ids: [ids, vocabulary].
std::vector<std::vector<float>> inspect_logits(const std::filesystem::path& path,
                                               const std::vector<int64_t>& ids);

struct ExportOptions {
  std::filesystem::path checkpoint;
  std::filesystem::path destination;
  std::string format = "hf";  // hf, gguf
  std::string type = "F32";   // of the matrices: F32, F16, BF16 (hf), Q8_0 (gguf)
  bool causal = false;        // export a prefix model as if it were causal
};
// Writes, reads back, and compares logits before it is called done; gives the largest difference and the
// like.
nlohmann::json export_model(const ExportOptions& options);

}  // namespace calque

// Checkpoint: a Hugging Face folder (model.safetensors, config.json, tokenizer) with the training state
// beside it (state.safetensors) and a manifest of checksums. It appears whole under its name, or not at all.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "calque/convert/safetensors.h"
#include "calque/data/tokenizer.h"
#include "calque/model/decoder.h"

namespace calque {

// Everything that a checkpoint holds, copied out of the running training.
struct CheckpointContent {
  NamedTensors weights;   // by Hugging Face's names; empty where there are adapters
  NamedTensors adapters;  // by our own names
  nlohmann::json config;
  std::string tokenizer;  // its file's bytes; empty where there is none
  std::string tokenizer_file = "tokenizer.model";
  NamedTensors state;       // optimizer, raw weights where the saved ones are averaged; may be empty
  nlohmann::json progress;  // counters of the run
};

void write_checkpoint(const std::filesystem::path& folder, const CheckpointContent& content);

// A checkpoint opened for reading; each file is checked against the manifest, where there is one, before it
// is used.
class Checkpoint {
 public:
  explicit Checkpoint(std::filesystem::path folder);

  const ModelConfig& config() const { return config_; }
  std::shared_ptr<Decoder> make_decoder() const;
  void load_into(const Decoder& decoder) const;  // the weights alone
  void load_adapters_into(const Decoder& decoder) const;
  Tokenizer tokenizer() const;
  bool has_tokenizer() const;
  Safetensors state() const;
  nlohmann::json progress() const;  // as it was given to write_checkpoint
  const std::filesystem::path& folder() const { return folder_; }
  void check_files() const;  // all of them, at once

 private:
  std::filesystem::path checked(const std::string& name) const;

  std::filesystem::path folder_;
  ModelConfig config_;
  nlohmann::json manifest_;  // null where there is none
};

}  // namespace calque

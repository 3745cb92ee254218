// Checkpoint: a Hugging Face folder (model.safetensors, config.json, tokenizer) with the training state
// (state.safetensors) and a manifest of checksums. It is written atomically.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "calque/checkpoint/safetensors.h"
#include "calque/data/tokenizer.h"
#include "calque/model/decoder.h"

namespace calque {

// Everything that a checkpoint holds.
struct CheckpointContent {
  NamedTensors weights;   // under Hugging Face's names; empty if there are adapters
  NamedTensors adapters;  // under calque's parameter names
  nlohmann::json config;
  std::string tokenizer;  // the bytes of its file; empty if there is none
  std::string tokenizer_file = "tokenizer.model";
  std::string readme = {};  // the model card; empty: none
  NamedTensors state;       // optimizer state, and the raw weights if the saved ones are averaged (EMA)
  nlohmann::json progress;  // counters of the run; null if there is no training state
};

void write_checkpoint(const std::filesystem::path& folder, const CheckpointContent& content);

// Writes checkpoint `to` with the model of `from`, without the training state. Files are hard links where the
// file system supports them, so that this takes no space.
void link_checkpoint(const std::filesystem::path& from, const std::filesystem::path& to);
// True if both hold the same model, according to the checksums in their manifests.
bool same_model(const std::filesystem::path& a, const std::filesystem::path& b);

// A checkpoint opened for reading. If there is a manifest, each file is checked against it before use.
class Checkpoint {
 public:
  explicit Checkpoint(std::filesystem::path folder);

  const ModelConfig& config() const { return config_; }
  std::shared_ptr<Decoder> make_decoder() const;  // adapters merged
  // Of a checkpoint of adapters: their base model without them, packed; and a decoder that shares such a base
  // and keeps the adapters apart, so that many of them need one copy of the base.
  bool has_adapters() const;
  std::shared_ptr<Decoder> make_packed_base(WeightPrecision precision) const;
  std::shared_ptr<Decoder> make_adapted(const Decoder& packed_base) const;
  void load_into(const Decoder& decoder) const;  // the weights only
  void load_adapters_into(const Decoder& decoder) const;
  Tokenizer tokenizer() const;
  bool has_tokenizer() const;
  Safetensors state() const;
  std::string adapter_base_hash() const;  // empty if there are no adapters
  nlohmann::json progress() const;        // CheckpointContent::progress
  const std::filesystem::path& folder() const { return folder_; }
  void check_files() const;  // against the manifest

 private:
  std::filesystem::path checked(const std::string& name) const;
  nlohmann::json own_settings() const;
  std::filesystem::path find_base(const nlohmann::json& own) const;
  std::shared_ptr<Decoder> make_base() const;
  void add_own_adapters(Decoder& decoder) const;

  std::filesystem::path folder_;
  ModelConfig config_;
  nlohmann::json manifest_;  // null if there is none
};

}  // namespace calque

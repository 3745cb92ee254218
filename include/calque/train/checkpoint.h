// Checkpoint: a Hugging Face folder (model.safetensors, config.json, tokenizer.model) with the training state
// beside it (state.safetensors) and a manifest of checksums. It appears whole under its name, or not at all.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "calque/convert/safetensors.h"
#include "calque/data/tokenizer.h"
#include "calque/model/decoder.h"

namespace calque {

// Everything that a checkpoint holds, copied out of the running training.
struct CheckpointContent {
  NamedTensors weights;  // by Hugging Face's names
  nlohmann::json config;
  std::string tokenizer;    // the model file's bytes
  NamedTensors state;       // optimizer, raw weights where the saved ones are averaged; may be empty
  nlohmann::json progress;  // counters of the run
};

void write_checkpoint(const std::filesystem::path& folder, const CheckpointContent& content);

// The checkpoints step-N of a run, the newest first; folders of any other name are not ours.
std::vector<std::pair<int64_t, std::filesystem::path>> list_checkpoints(
    const std::filesystem::path& checkpoints);

// A checkpoint opened for reading; its files are checked against the manifest where it has one.
class Checkpoint {
 public:
  explicit Checkpoint(std::filesystem::path folder);

  const ModelConfig& config() const { return config_; }
  std::shared_ptr<Decoder> make_decoder() const;
  Tokenizer tokenizer() const;
  Safetensors state() const;
  nlohmann::json progress() const;  // as it was given to write_checkpoint
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  ModelConfig config_;
};

// Writes checkpoints of a run on a thread of its own, one at a time, points `last` and `best` at them, and
// deletes those that are neither new nor best. A failure comes out at the next call.
class CheckpointWriter {
 public:
  CheckpointWriter(std::filesystem::path checkpoints, int64_t keep);
  ~CheckpointWriter();

  // As step-N; waits until the one before it is written.
  void write(int64_t step, CheckpointContent content, bool best);
  void mark_best(int64_t step);  // points `best` at a checkpoint that is written already
  void finish();                 // waits until everything is on the disk

 private:
  void store(int64_t step, const CheckpointContent& content, bool best) const;

  std::filesystem::path folder_;
  int64_t keep_;
  std::thread thread_;
  std::exception_ptr failure_;
};

}  // namespace calque

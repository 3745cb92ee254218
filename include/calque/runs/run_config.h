// RunConfig: everything that defines a training run, as `calque train CONFIG` reads it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calque/data/data_config.h"
#include "calque/data/tokenizer.h"
#include "calque/decode/decode_config.h"
#include "calque/model/model_config.h"
#include "calque/runs/distributed_config.h"
#include "calque/runs/finetune_config.h"
#include "calque/runs/train_config.h"

namespace calque {

struct RunConfig {
  std::string run;
  int64_t seed = 1;
  DataConfig data;
  TokenizerConfig tokenizer;
  ModelConfig model;
  FinetuneConfig finetune;
  TrainConfig train;
  DistributedConfig distributed;
  DecodeConfig decode;
};
Fields fields(RunConfig& config);

// Reads a configuration and checks that its values fit together; the first mistake is a UserError that names
// file, line and key. The corpus is not looked at: check_data_files() does that.
RunConfig read_run_config(const std::filesystem::path& file, const std::vector<std::string>& overrides);

// The configuration that a run stored at its start, with `overrides`. Keys of earlier versions are
// understood.
RunConfig read_stored_run_config(const std::filesystem::path& run,
                                 const std::vector<std::string>& overrides = {});

RunConfig read_stored_run_config(const std::string& text, const std::filesystem::path& run,
                                 const std::vector<std::string>& overrides);

// Keys that have no effect in this combination, and other things that are probably not meant.
std::vector<std::string> config_warnings(const RunConfig& config);

// Refuses a model or a batch that the longest pair of data.max_tokens does not fit into: `tokens` with those
// around source and target.
void check_longest_sequence(const RunConfig& config, int64_t tokens);

// Refuses a data.train or data.valid that is not there, naming its key. Training needs no data.test.
void check_data_files(const DataConfig& data);

}  // namespace calque

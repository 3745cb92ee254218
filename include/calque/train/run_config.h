// RunConfig: everything that a training run is made from, as `calque train CONFIG` reads it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calque/data/data_config.h"
#include "calque/data/tokenizer.h"
#include "calque/decode/decode_config.h"
#include "calque/model/model_config.h"
#include "calque/train/train_config.h"
#include "calque/train/tuning_config.h"

namespace calque {

struct RunConfig {
  std::string run;
  int64_t seed = 1;
  DataConfig data;
  TokenizerConfig tokenizer;
  ModelConfig model;
  TuningConfig tuning;
  TrainConfig train;
  DecodeConfig decode;
};
Fields fields(RunConfig& config);

// Reads and checks one; the first mistake is a UserError that names file, line and key.
RunConfig read_run_config(const std::filesystem::path& file, const std::vector<std::string>& overrides);

}  // namespace calque

// The parts of a training, built from its configuration: device, model, batches.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "calque/data/batch_stream.h"
#include "calque/data/tokenizer.h"
#include "calque/model/decoder.h"
#include "calque/train/optimizer.h"
#include "calque/train/run_config.h"

namespace calque {

torch::Device choose_device(DeviceKind kind);

BatchStreamOptions stream_options(const RunConfig& config, const std::filesystem::path& cache);
std::vector<Batch> validation_batches(const RunConfig& config, const Tokenizer& tokenizer,
                                      const std::filesystem::path& cache);

// The base's own where a run starts from one, else as the configuration says.
Tokenizer choose_tokenizer(const RunConfig& config, const std::filesystem::path& cache);

// What of the learning rate each parameter gets, by its name.
Optimizer::RateShare rate_shares(const RunConfig& config);

// With its weights drawn, or taken from the base and frozen or adapted as the configuration says; lengths
// that do not fit the model or a batch are refused by their keys.
std::shared_ptr<Decoder> make_model(const RunConfig& config, const Tokenizer& tokenizer,
                                    const torch::Device& device);

}  // namespace calque

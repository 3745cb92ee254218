// The options of every command that runs a model: the keys of the `decode` section as flags, threads,
// precision and device.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "calque/runs/model_source.h"

namespace calque::cli {

struct ModelOptions {
  std::map<std::string, std::string> decode;  // keys of DecodeConfig that were given, with their values
  int64_t threads = 0;
  std::string precision = "float32";
  std::string device = "cpu";
};

void add_decode_options(CLI::App& command, ModelOptions& options);
void add_thread_options(CLI::App& command, ModelOptions& options);  // and precision and device
void add_device_option(CLI::App& command, std::string& device);
// --device of commands with a configuration: an override. Called after `overrides` was added as an option.
void add_training_device_option(CLI::App& command, std::vector<std::string>& overrides);
torch::Device chosen_device(const std::string& device);  // what --device names

// Flags override the run's `decode` section.
void apply_decode_options(const ModelOptions& options, DecodeConfig& config);
std::unique_ptr<Translator> open_model(const ModelSource& source, const ModelOptions& options);

}  // namespace calque::cli

// The options that every command has which runs a model: how it searches, with how many threads, in which
// precision.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "calque/train/model_source.h"

namespace calque::cli {

struct ModelOptions {
  std::optional<int64_t> beam;
  std::optional<int64_t> nbest;
  std::optional<double> length_penalty;
  std::optional<int64_t> batch;
  bool sample = false;
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<int64_t> seed;
  std::optional<int64_t> no_repeat_ngram;
  std::filesystem::path shots;
  int64_t threads = 0;
  std::string precision = "float32";
};

void add_thread_options(CLI::App& command, ModelOptions& options);
void add_search_options(CLI::App& command, ModelOptions& options);
void add_shots_option(CLI::App& command, ModelOptions& options);

// What was given on the command line wins over the run's `decode` section.
void apply_search_options(const ModelOptions& options, DecodeConfig& config);
std::unique_ptr<Translator> open_model(const ModelSource& source, const ModelOptions& options);

}  // namespace calque::cli

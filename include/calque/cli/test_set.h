// The options that name a test set: one TSV of pairs, two files of lines, or what a run's configuration has.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "calque/train/evaluation.h"

namespace calque::cli {

struct TestSetOptions {
  std::filesystem::path data;
  std::filesystem::path source;
  std::filesystem::path reference;
  std::string name;
};

void add_test_set_options(CLI::App& command, TestSetOptions& options);

// `config`: the run's, whose data.test (or data.valid) is taken where nothing was named; may be null.
TestSet open_test_set(const TestSetOptions& options, const RunConfig* config);

}  // namespace calque::cli

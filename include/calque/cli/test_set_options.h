// The options that name a test set: a TSV of pairs, two files of lines, or what a run's configuration has.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "calque/runs/evaluation.h"

namespace calque::cli {

struct TestSetOptions {
  std::filesystem::path data;
  std::filesystem::path source;
  std::filesystem::path reference;
  std::string name;
};

void add_test_set_options(CLI::App& command, TestSetOptions& options);

// The test set that the options name; `otherwise` gives one where they name none.
TestSet open_test_set(const TestSetOptions& options, const std::function<TestSet()>& otherwise);

}  // namespace calque::cli

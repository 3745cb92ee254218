// DataCheck: finds problems in a corpus, line by line, before training.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calque/data/data_config.h"
#include "calque/data/tokenizer.h"

namespace calque {

struct DataExample {
  std::string file;
  int64_t line = 0;
  std::string text;
};

struct DataFinding {
  std::string kind;     // "empty-line"
  std::string meaning;  // one-line description
  bool fatal = false;   // training would fail or learn from wrong data
  int64_t count = 0;
  std::vector<DataExample> examples;  // the first few
};

struct DataSplit {
  std::string name;  // train, valid, test
  int64_t pairs = 0;
  int64_t source_words = 0;
  int64_t target_words = 0;
};

struct DataReport {
  std::vector<DataFinding> findings;  // only kinds that occur, fatal ones first
  std::vector<DataSplit> splits;
  int64_t pairs = 0;                   // in all splits
  std::optional<double> unknown_rate;  // share of byte-fallback and unknown tokens
  bool fatal() const;
  nlohmann::json to_json() const;
  std::string to_text() const;
};

// With a `tokenizer` tokens are counted exactly; with nullptr their number is estimated.
DataReport check_data(const DataConfig& config, const Tokenizer* tokenizer, size_t max_examples,
                      int threads = 1);  // mutate: speed only

}  // namespace calque

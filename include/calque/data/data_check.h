// DataCheck: what is wrong with a corpus, by line, before anything is trained on it.
#pragma once

#include <cstdint>
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
  std::string kind;     // «empty-line»
  std::string meaning;  // in words
  bool fatal = false;   // training would go wrong
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
  std::vector<DataFinding> findings;  // only kinds that occur, the fatal ones first
  std::vector<DataSplit> splits;
  int64_t pairs = 0;                   // in all splits
  std::optional<double> unknown_rate;  // pieces that the tokenizer has no better piece for than bytes
  bool fatal() const;
};

// `tokenizer`, where there is one already, counts tokens exactly; without it, lengths are estimated.
DataReport check_data(const DataConfig& config, const Tokenizer* tokenizer, size_t examples_a_kind);

}  // namespace calque

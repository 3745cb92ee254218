// SearchSpace: which configuration keys a search varies, and between which values. It is read from YAML:
//
//   train.learning_rate: {log: [5e-4, 8e-3]}      # log-uniform between the two
//   model.dropout: {uniform: [0, 0.3]}
//   train.batch_tokens: [1024, 2048, 4096]        # one of these
//   shape:                                        # keys that change together, under a name of one's own
//     - {model.layers: 4, model.hidden_size: 128}
//     - {model.layers: 2, model.hidden_size: 192}
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "calque/runs/run_config.h"

namespace calque {

class SearchSpace {
 public:
  struct Dimension {
    std::vector<std::vector<std::string>> choices;  // the overrides of each choice; empty for a range
    std::string key;                                // of a range
    double low = 0, high = 0;
    bool logarithmic = false, integer = false;
  };

  // Every key and value is checked; errors name `name` and the line.
  SearchSpace(const std::string& yaml, const std::string& name);

  // The settings of one draw as overrides, "train.learning_rate=0.0013": a pure function of seed and draw.
  // Successive draws are spread evenly over each range.
  std::vector<std::string> sample(uint64_t seed, int64_t draw) const;

 private:
  std::vector<Dimension> dimensions_;
};

// The space of a search that was given none, around a configuration: learning rate, batch, optimizer, dropout
// and, unless it starts from a base model, vocabulary and shape.
std::string default_space(const RunConfig& config);

}  // namespace calque

// Validator: measures a model on data.valid while it trains: its loss on all of it, BLEU and samples on a
// part that is translated greedily.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calque/data/data_cache.h"
#include "calque/runs/evaluation.h"
#include "calque/runs/run_config.h"
#include "calque/train/run_setup.h"
#include "calque/train/trainer.h"

namespace calque {

struct ValidationResult {
  struct Sample {
    std::string source, reference, hypothesis;
  };
  double loss = 0;
  std::optional<double> bleu;
  std::vector<Sample> samples;
  double seconds = 0;

  nlohmann::json to_json() const;
};

class Validator {
 public:
  // Without data.valid it is empty and must not be asked.
  Validator(const RunConfig& config, const Tokenizer& tokenizer, DataCache& cache);

  bool empty() const { return validation_.batches.empty(); }
  int64_t skipped() const { return validation_.skipped; }
  bool translates() const { return sentences_.has_value(); }
  // `first_sample`: the sentence that the samples begin with, so that the log shows others each time.
  ValidationResult validate(Trainer& trainer, int64_t first_sample) const;

 private:
  double loss(Trainer& trainer) const;
  std::vector<std::string> translations(Trainer& trainer) const;
  void translate(Trainer& trainer, int64_t first_sample, ValidationResult& result) const;

  Tokenizer tokenizer_;
  ValidationBatches validation_;
  std::optional<TestSet> sentences_;
};

inline constexpr int64_t samples_per_validation = 4;

}  // namespace calque

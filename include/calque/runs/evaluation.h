// Evaluation: a test set translated by a model and scored; stored in the run, so that comparing runs does not
// translate again.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calque/data/corpus.h"
#include "calque/distributed/process_group.h"
#include "calque/metrics/text_scores.h"
#include "calque/runs/model_source.h"

namespace calque {

// Sentences with their references, in order.
struct TestSet {
  std::string name;
  std::vector<std::string> sources;
  std::vector<std::string> references;
  uint64_t hash = 0;  // of both
};
TestSet read_test_set(const Corpus& corpus, const std::string& name, int64_t most = 0);
// Lines of two files; their counts must agree.
TestSet read_test_set(const std::filesystem::path& sources, const std::filesystem::path& references);
// The run's own: its data.test.
TestSet default_test_set(const ModelSource& source);
std::vector<std::string> read_lines(const std::filesystem::path& file);

// What is known of an evaluation besides its scores. Translations by others have the first three alone.
struct EvaluationFacts {
  double length_ratio = 0;          // words of the hypotheses / words of the references
  double untranslated = 0;          // share of hypotheses that equal their source
  double empty = 0;                 // share of empty hypotheses
  std::optional<double> loss = {};  // mean negative log-probability per token of the references
  double seconds = 0, sentences_per_second = 0, tokens_per_second = 0;
  double cut_off = 0;  // share of hypotheses that reached the length limit
  int64_t beam = 0;
  std::string precision = {}, checkpoint = {};

  nlohmann::json to_json() const;
  static EvaluationFacts from_json(const nlohmann::json& json);
};

struct Evaluation {
  std::string system;  // the name of the run, checkpoint or file
  TestSet test;
  std::vector<std::string> hypotheses;
  TextScores scores;
  EvaluationFacts facts;

  ScoredText text() const;
  nlohmann::json to_json() const;
};

// Scores existing translations.
Evaluation score_translations(const std::string& system, const TestSet& test,
                              std::vector<std::string> hypotheses, const ScoringOptions& options);

// Translates and scores. The result is stored in the run's evaluations/NAME; an evaluation of the same
// weights, test set and search that is stored there is reused, unless `again`.
Evaluation evaluate_model(const ModelSource& source, Translator& translator, const TestSet& test,
                          const ScoringOptions& options, bool again = false);
// The same by all ranks of a group: rank 0 returns the evaluation, the others nothing.
std::optional<Evaluation> evaluate_model(const ModelSource& source, Translator& translator,
                                         const TestSet& test, const ScoringOptions& options, bool again,
                                         ProcessGroup& group);

}  // namespace calque

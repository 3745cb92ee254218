// Evaluation: a test set translated by a model and scored; kept in the run, so that comparing runs need not
// translate again.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/data/corpus.h"
#include "calque/evaluate/text_scores.h"
#include "calque/train/model_source.h"

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
std::vector<std::string> read_lines(const std::filesystem::path& file);

struct Evaluation {
  std::string system;  // the run's name, the checkpoint's, the file's
  TestSet test;
  std::vector<std::string> hypotheses;
  TextScores scores;
  nlohmann::json
      facts;  // loss, perplexity, length_ratio, untranslated, empty, seconds, sentences_per_second …

  ScoredText text() const;
  nlohmann::json to_json() const;
};

// Translations that exist already, scored.
Evaluation score_translations(const std::string& system, const TestSet& test,
                              std::vector<std::string> hypotheses, const ScoringOptions& options);

// Translates and scores. Where the source is a run, everything is kept in its evaluations/NAME, and what is
// kept there of the same weights, test set and search is used again unless `anew`.
Evaluation evaluate_model(const ModelSource& source, Translator& translator, const TestSet& test,
                          const ScoringOptions& options, bool anew = false);

}  // namespace calque

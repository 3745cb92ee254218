// TextScores: translations scored against references by several metrics, with confidence intervals and
// sacreBLEU's signatures, over the corpus and by sentence.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/evaluate/bleu.h"
#include "calque/evaluate/chrf.h"
#include "calque/evaluate/metric.h"
#include "calque/evaluate/significance.h"
#include "calque/evaluate/ter.h"

namespace calque {

struct ScoringOptions {
  std::vector<std::string> metrics = {"bleu", "chrf", "ter"};
  BleuOptions bleu;
  ChrfOptions chrf;
  TerOptions ter;
  int resamples = default_resamples;  // for the intervals; 0: none
  uint32_t seed = default_resampling_seed;
};

struct MetricScore {
  std::string key;  // bleu, chrf, ter
  std::string name;
  double score = 0;
  Interval interval;
  std::string signature;
  std::string details;
  std::vector<Statistics> statistics;  // by sentence
};

struct TextScores {
  std::vector<MetricScore> metrics;
  int64_t sentences = 0;

  const MetricScore* find(const std::string& key) const;
  nlohmann::json to_json() const;  // {"bleu": {"score", "low", "high", "signature"}, …, "sentences"}
  std::string to_text() const;     // the lines that sacreBLEU prints
};

// One metric by its name; an unknown one is a UserError that lists them.
std::unique_ptr<Metric> make_metric(const std::string& key, const ScoringOptions& options);

// An empty text, or sides of different length, is a UserError.
TextScores score_text(const ScoredText& text, const ScoringOptions& options);

// Each sentence's own BLEU (of the orders that it is long enough for), in order.
std::vector<double> sentence_bleu(const ScoredText& text, BleuOptions options);
std::vector<double> sentence_scores(const Metric& metric, const std::vector<Statistics>& statistics);

}  // namespace calque

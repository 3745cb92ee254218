// TextScores: the scores of translations under several metrics, over the corpus and per sentence, with
// confidence intervals and sacreBLEU signatures.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calque/metrics/bleu.h"
#include "calque/metrics/chrf.h"
#include "calque/metrics/metric.h"
#include "calque/metrics/significance.h"
#include "calque/metrics/ter.h"

namespace calque {

struct ScoringOptions {
  std::vector<std::string> metrics = {"bleu", "chrf", "ter"};
  BleuOptions bleu;
  ChrfOptions chrf;
  TerOptions ter;
  int resamples = default_resamples;  // for the confidence intervals; 0: no intervals
  uint32_t seed = default_resampling_seed;
  std::function<void()> check = {};  // called before each sentence; may throw
};

struct MetricScore {
  std::string key;  // bleu, chrf, ter
  std::string name;
  double score = 0;
  Interval interval;
  std::string signature;
  std::string details;
  std::vector<Statistics> statistics;  // per sentence
};

struct TextScores {
  std::vector<MetricScore> metrics;
  int64_t sentences = 0;

  const MetricScore* find(const std::string& key) const;
  nlohmann::json to_json() const;  // {"bleu": {"score", "low", "high", "signature"}, …, "sentences"}
  std::string to_text() const;     // the lines that sacreBLEU prints
};

// Creates a metric by name. An unknown name throws a UserError that lists the known ones.
std::unique_ptr<Metric> make_metric(const std::string& key, const ScoringOptions& options);

// Throws a UserError if the text is empty or the numbers of hypotheses and references differ.
TextScores score_text(const ScoredText& text, const ScoringOptions& options);

// The BLEU of each sentence, with effective_order.
std::vector<double> sentence_bleu(const ScoredText& text, BleuOptions options);
std::vector<double> sentence_scores(const Metric& metric, const std::vector<Statistics>& statistics);

}  // namespace calque

// Metric: a score of translations against references, from statistics that are counted a sentence at a time
// and summed over a corpus, so that resampling needs no text. The numbers are sacreBLEU's, to the last digit.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

// What a sentence adds to a corpus.
using Statistics = std::vector<double>;

class Metric {
 public:
  virtual ~Metric() = default;

  virtual std::string name() const = 0;  // BLEU, chrF2, chrF2++, TER
  // The part of the signature that is the metric's own: «case:mixed|eff:no|tok:13a|smooth:exp».
  virtual std::string signature() const = 0;
  virtual Statistics count(std::string_view hypothesis, std::span<const std::string> references) const = 0;
  virtual double score(const Statistics& sums) const = 0;
  // The same from 32-bit sums, which sacreBLEU resamples with; scores are of that precision then.
  virtual double score_single(std::span<const float> sums) const = 0;
  virtual std::string details(const Statistics&) const {
    return "";
  }  // what sacreBLEU prints after the score
  virtual bool higher_is_better() const { return true; }
};

// A corpus by sentence: translations, and for each sentence one or more references.
struct ScoredText {
  std::vector<std::string> hypotheses;
  std::vector<std::vector<std::string>> references;
};

std::vector<Statistics> count_all(const Metric& metric, const ScoredText& text);
Statistics sum_of(std::span<const Statistics> statistics);

}  // namespace calque

// Metric: scores translations against references. It counts statistics per sentence and computes the score
// from their sums over the corpus, so that resampling does not need the text. Scores match sacreBLEU to the
// last digit.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

// The counts of one sentence, or their sums over a corpus.
using Statistics = std::vector<double>;

class Metric {
 public:
  virtual ~Metric() = default;

  virtual std::string name() const = 0;  // BLEU, chrF2, chrF2++, TER
  // The metric's part of the signature: "case:mixed|eff:no|tok:13a|smooth:exp".
  virtual std::string signature() const = 0;
  virtual Statistics count(std::string_view hypothesis, std::span<const std::string> references) const = 0;
  virtual double score(const Statistics& sums) const = 0;
  // Like score(), but in float32, because sacreBLEU resamples in float32.
  virtual double score_single(std::span<const float> sums) const = 0;
  // The text that sacreBLEU prints after the score.
  virtual std::string details(const Statistics&) const { return ""; }
  virtual bool higher_is_better() const { return true; }
};

// Translations of a corpus, with one or more references per sentence.
struct ScoredText {
  std::vector<std::string> hypotheses;
  std::vector<std::vector<std::string>> references;
};

// `check` is called before each sentence, and may throw to end a long count.
std::vector<Statistics> count_all(const Metric& metric, const ScoredText& text,
                                  const std::function<void()>& check = {});
Statistics sum_of(std::span<const Statistics> statistics);

}  // namespace calque

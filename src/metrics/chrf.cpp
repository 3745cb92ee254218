#include "calque/metrics/chrf.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "calque/base/unicode.h"

namespace calque {
namespace {

using TextCounts = std::unordered_map<std::u32string, double>;

bool is_ascii_punctuation(char32_t c) {
  return (c >= U'!' && c <= U'/') || (c >= U':' && c <= U'@') || (c >= U'[' && c <= U'`') ||
         (c >= U'{' && c <= U'~');
}

// Splits one punctuation mark from the end of each word, or else from its start. Of "(hi)" only the last mark
// is split off, as in the original chrF++.
std::vector<std::u32string> split_punctuation(const std::vector<std::u32string>& words) {
  std::vector<std::u32string> parts;
  for (const std::u32string& word : words) {
    if (word.size() > 1 && is_ascii_punctuation(word.back())) {
      parts.push_back(word.substr(0, word.size() - 1));
      parts.push_back(word.substr(word.size() - 1));
    } else if (word.size() > 1 && is_ascii_punctuation(word.front())) {
      parts.push_back(word.substr(0, 1));
      parts.push_back(word.substr(1));
    } else {
      parts.push_back(word);
    }
  }
  return parts;
}

// Statistics per order: n-grams of the hypothesis, n-grams of the reference, matches.
class Chrf : public Metric {
 public:
  explicit Chrf(const ChrfOptions& options) : options_(options) {}

  std::string name() const override {
    return fmt::format("chrF{}{}", options_.beta, std::string(static_cast<size_t>(options_.word_order), '+'));
  }
  std::string signature() const override {
    return fmt::format("case:{}|eff:yes|nc:{}|nw:{}|space:no", options_.lowercase ? "lc" : "mixed",
                       options_.character_order, options_.word_order);
  }

  Statistics count(std::string_view hypothesis, std::span<const std::string> references) const override {
    const auto counts = ngrams(hypothesis);
    Statistics best;
    double best_score = -1;
    for (const std::string& reference : references) {
      const auto reference_counts = ngrams(reference);
      Statistics statistics;
      for (size_t order = 0; order < counts.size(); ++order) {
        double of_hypothesis = 0, of_reference = 0, matches = 0;
        for (const auto& [ngram, times] : counts[order]) {
          of_hypothesis += times;
          const auto found = reference_counts[order].find(ngram);
          if (found != reference_counts[order].end()) matches += std::min(times, found->second);
        }
        for (const auto& [ngram, times] : reference_counts[order]) of_reference += times;
        statistics.insert(statistics.end(), {of_reference > 0 ? of_hypothesis : 0, of_reference, matches});
      }
      const double value = compute<double>(statistics);
      if (value > best_score) {
        best_score = value;
        best = statistics;
      }
    }
    return best;
  }

  double score(const Statistics& sums) const override { return compute<double>(sums); }
  double score_single(std::span<const float> sums) const override { return compute<float>(sums); }

 private:
  std::vector<TextCounts> ngrams(std::string_view text) const {
    const auto words = split_words(code_points(options_.lowercase ? lower_case(text) : std::string(text)));
    std::u32string characters;
    for (const auto& word : words) characters += word;
    std::vector<TextCounts> counts(static_cast<size_t>(options_.character_order + options_.word_order));
    for (size_t order = 1; order <= static_cast<size_t>(options_.character_order); ++order) {
      for (size_t at = 0; at + order <= characters.size(); ++at)
        ++counts[order - 1][characters.substr(at, order)];
    }
    if (options_.word_order == 0) return counts;
    const auto parts = split_punctuation(words);
    for (size_t order = 1; order <= static_cast<size_t>(options_.word_order); ++order) {
      for (size_t at = 0; at + order <= parts.size(); ++at) {
        std::u32string ngram = parts[at];
        for (size_t i = 1; i < order; ++i) ngram += U" " + parts[at + i];
        ++counts[static_cast<size_t>(options_.character_order) + order - 1][ngram];
      }
    }
    return counts;
  }

  template <class Number>
  double compute(std::span<const Number> sums) const {
    const auto factor = static_cast<Number>(options_.beta * options_.beta);
    Number precision = 0, recall = 0;
    int orders = 0;
    for (size_t i = 0; i + 2 < sums.size(); i += 3) {
      if (sums[i] <= 0 || sums[i + 1] <= 0) continue;
      precision += sums[i + 2] / sums[i];
      recall += sums[i + 2] / sums[i + 1];
      ++orders;
    }
    if (orders == 0) return 0;
    precision /= static_cast<Number>(orders);
    recall /= static_cast<Number>(orders);
    if (precision + recall == 0) return 0;
    Number score = (1 + factor) * precision * recall;
    score /= factor * precision + recall;
    return 100 * score;
  }

  ChrfOptions options_;
};

}  // namespace

std::unique_ptr<Metric> make_chrf(const ChrfOptions& options) { return std::make_unique<Chrf>(options); }

}  // namespace calque

#include "calque/metrics/bleu.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "calque/base/unicode.h"

namespace calque {
namespace {

constexpr size_t bleu_orders = 4;

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_point_or_comma(char32_t c) { return c == U'.' || c == U','; }

// Finds adjacent characters that `first` and `second` accept, from left to right and without overlap, and
// replaces them by: before, first character, space, second character, after. Like a regular-expression
// substitution with two groups.
template <class First, class Second>
std::u32string space_pairs(const std::u32string& text, First first, Second second, const char32_t* before,
                           const char32_t* after) {
  std::u32string out;
  out.reserve(text.size() * 2);
  for (size_t i = 0; i < text.size();) {
    if (i + 1 < text.size() && first(text[i]) && second(text[i + 1])) {
      out += before;
      out += text[i];
      out += U' ';
      out += text[i + 1];
      out += after;
      i += 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

template <class Matches>
std::u32string space_around(const std::u32string& text, Matches matches) {
  std::u32string out;
  out.reserve(text.size() * 2);
  for (const char32_t c : text) {
    if (matches(c)) {
      out += U' ';
      out += c;
      out += U' ';
    } else {
      out += c;
    }
  }
  return out;
}

void replace_all(std::u32string& text, std::u32string_view from, std::u32string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::u32string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// mteval-v13a, the tokenisation of the WMT evaluations.
std::u32string words_13a(std::u32string text) {
  replace_all(text, U"<skipped>", U"");
  replace_all(text, U"-\n", U"");
  replace_all(text, U"\n", U" ");
  replace_all(text, U"&quot;", U"\"");
  replace_all(text, U"&amp;", U"&");
  replace_all(text, U"&lt;", U"<");
  replace_all(text, U"&gt;", U">");
  text = U" " + text + U" ";
  text = space_around(text, [](char32_t c) {
    return (c >= U'{' && c <= U'~') || (c >= U'[' && c <= U'`') || (c >= U' ' && c <= U'&') ||
           (c >= U'(' && c <= U'+') || (c >= U':' && c <= U'@') || c == U'/';
  });
  const auto no_digit = [](char32_t c) { return !is_digit(c); };
  text = space_pairs(text, no_digit, is_point_or_comma, U"", U" ");
  text = space_pairs(text, is_point_or_comma, no_digit, U" ", U"");
  return space_pairs(
      text, is_digit, [](char32_t c) { return c == U'-'; }, U"", U" ");
}

// mteval-v14 --international-tokenization.
std::u32string words_intl(std::u32string text) {
  const auto no_number = [](char32_t c) { return !is_number(c); };
  text = space_pairs(text, no_number, is_punctuation, U"", U" ");
  text = space_pairs(text, is_punctuation, no_number, U" ", U"");
  return space_around(text, is_symbol);
}

std::u32string bleu_text(std::string_view text, BleuTokenizer tokenizer) {
  const std::u32string all = code_points(text);
  std::u32string points(trim_end(all));
  switch (tokenizer) {
    case BleuTokenizer::v13a:
      return words_13a(std::move(points));
    case BleuTokenizer::intl:
      return words_intl(std::move(points));
    case BleuTokenizer::character:
      return space_around(points, [](char32_t) { return true; });
    case BleuTokenizer::none:
      break;
  }
  return points;
}

using NgramCounts = std::unordered_map<std::u32string, double>;

// Counts n-grams. The key is the words joined by line feeds, which no word contains.
std::array<NgramCounts, bleu_orders> count_ngrams(const std::vector<std::u32string>& words) {
  std::array<NgramCounts, bleu_orders> counts;
  for (size_t begin = 0; begin < words.size(); ++begin) {
    std::u32string ngram;
    for (size_t order = 0; order < bleu_orders && begin + order < words.size(); ++order) {
      if (order > 0) ngram += U'\n';
      ngram += words[begin + order];
      ++counts[order][ngram];
    }
  }
  return counts;
}

// Statistics: hypothesis length, reference length, matches per order, n-grams per order.
class Bleu : public Metric {
 public:
  explicit Bleu(const BleuOptions& options) : options_(options) {}

  std::string name() const override { return "BLEU"; }

  std::string signature() const override {
    std::string smoothing(name_of(options_.smoothing));
    if (options_.smoothing == BleuSmoothing::floor || options_.smoothing == BleuSmoothing::add_k)
      smoothing += fmt::format("[{:.2f}]", smoothing_value());
    return fmt::format("case:{}|eff:{}|tok:{}|smooth:{}", options_.lowercase ? "lc" : "mixed",
                       options_.effective_order ? "yes" : "no", name_of(options_.tokenizer), smoothing);
  }

  Statistics count(std::string_view hypothesis, std::span<const std::string> references) const override {
    const auto hypothesis_words = words(hypothesis);
    const auto counts = count_ngrams(hypothesis_words);
    std::array<NgramCounts, bleu_orders> allowed;
    double nearest_length = std::numeric_limits<double>::infinity();
    const auto length = static_cast<double>(hypothesis_words.size());
    for (const std::string& reference : references) {
      const auto reference_words = words(reference);
      const auto reference_length = static_cast<double>(reference_words.size());
      const double distance = std::abs(length - reference_length), best = std::abs(length - nearest_length);
      if (distance < best || (distance == best && reference_length < nearest_length))
        nearest_length = reference_length;
      const auto reference_counts = count_ngrams(reference_words);
      for (size_t order = 0; order < bleu_orders; ++order) {
        for (const auto& [ngram, times] : reference_counts[order]) {
          double& most = allowed[order][ngram];
          most = std::max(most, times);
        }
      }
    }
    Statistics statistics(2 + 2 * bleu_orders, 0.0);
    statistics[0] = length;
    statistics[1] = nearest_length;
    for (size_t order = 0; order < bleu_orders; ++order) {
      for (const auto& [ngram, times] : counts[order]) {
        statistics[2 + bleu_orders + order] += times;
        const auto found = allowed[order].find(ngram);
        if (found != allowed[order].end()) statistics[2 + order] += std::min(times, found->second);
      }
    }
    return statistics;
  }

  double score(const Statistics& sums) const override { return compute<double>(sums).score; }
  double score_single(std::span<const float> sums) const override { return compute<float>(sums).score; }

  std::string details(const Statistics& sums) const override {
    const auto result = compute<double>(sums);
    std::string precisions;
    for (const double precision : result.precisions)
      precisions += fmt::format("{}{:.1f}", precisions.empty() ? "" : "/", precision);
    return fmt::format("{} (BP = {:.3f} ratio = {:.3f} hyp_len = {:.0f} ref_len = {:.0f})", precisions,
                       result.brevity, sums[1] > 0 ? sums[0] / sums[1] : 0.0, sums[0], sums[1]);
  }

 private:
  struct Result {
    double score = 0, brevity = 1;
    std::array<double, bleu_orders> precisions{};
  };

  double smoothing_value() const {
    return options_.smoothing_value.value_or(options_.smoothing == BleuSmoothing::floor ? 0.1 : 1.0);
  }

  std::vector<std::u32string> words(std::string_view text) const {
    return split_words(options_.lowercase ? bleu_text(lower_case(text), options_.tokenizer)
                                          : bleu_text(text, options_.tokenizer));
  }

  template <class Number>
  Result compute(std::span<const Number> sums) const {
    Result result;
    const double length = sums[0], reference_length = sums[1];
    if (length < reference_length)
      result.brevity = length > 0 ? std::exp(1 - reference_length / length) : 0.0;
    bool any = false;
    for (size_t order = 0; order < bleu_orders; ++order) any = any || sums[2 + order] > 0;
    if (!any) return result;
    double halving = 1;
    size_t orders = bleu_orders;
    for (size_t order = 0; order < bleu_orders; ++order) {
      Number matches = sums[2 + order], total = sums[2 + bleu_orders + order];
      if (options_.smoothing == BleuSmoothing::add_k && order > 0) {
        matches += static_cast<Number>(smoothing_value());
        total += static_cast<Number>(smoothing_value());
      }
      if (total == 0) break;
      if (options_.effective_order) orders = order + 1;
      if (matches != 0) {
        result.precisions[order] = static_cast<Number>(100) * matches / total;
      } else if (options_.smoothing == BleuSmoothing::exp) {
        halving *= 2;
        result.precisions[order] = static_cast<Number>(100) / (static_cast<Number>(halving) * total);
      } else if (options_.smoothing == BleuSmoothing::floor) {
        result.precisions[order] = static_cast<Number>(100 * smoothing_value()) / total;
      }
    }
    double logs = 0;
    for (size_t order = 0; order < orders; ++order)
      logs += result.precisions[order] == 0 ? -9999999999.0 : std::log(result.precisions[order]);
    result.score = result.brevity * std::exp(logs / static_cast<double>(orders));
    return result;
  }

  BleuOptions options_;
};

}  // namespace

std::unique_ptr<Metric> make_bleu(const BleuOptions& options) { return std::make_unique<Bleu>(options); }

std::string bleu_words(std::string_view text, BleuTokenizer tokenizer) {
  std::string line;
  for (const auto& word : split_words(bleu_text(text, tokenizer)))
    line += (line.empty() ? "" : " ") + to_utf8(word);
  return line;
}

}  // namespace calque

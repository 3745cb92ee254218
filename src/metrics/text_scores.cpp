#include "calque/metrics/text_scores.h"

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/base/text.h"

namespace calque {

using nlohmann::json;

std::unique_ptr<Metric> make_metric(const std::string& key, const ScoringOptions& options) {
  if (key == "bleu") return make_bleu(options.bleu);
  if (key == "chrf") return make_chrf(options.chrf);
  if (key == "ter") return make_ter(options.ter);
  const std::vector<std::string> known = {"bleu", "chrf", "ter"};
  throw UserError(fmt::format("{}: no such metric{}", key, did_you_mean(key, known)),
                  "known metrics: " + join(known, ", "));
}

TextScores score_text(const ScoredText& text, const ScoringOptions& options) {
  if (text.hypotheses.empty()) throw UserError("nothing to score: there are no sentences");
  if (text.hypotheses.size() != text.references.size()) {
    throw UserError(
        fmt::format("expected one reference per translation, found {} translations and {} references",
                    text.hypotheses.size(), text.references.size()));
  }
  for (const auto& references : text.references) {
    if (references.empty()) throw UserError("a translation has no reference");
  }
  TextScores scores;
  scores.sentences = static_cast<int64_t>(text.hypotheses.size());
  for (const std::string& key : options.metrics) {
    const auto metric = make_metric(key, options);
    MetricScore one;
    one.key = key;
    one.name = metric->name();
    one.statistics = count_all(*metric, text, options.check);
    const Statistics sums = sum_of(one.statistics);
    one.score = metric->score(sums);
    one.details = metric->details(sums);
    one.interval = {one.score, one.score, one.score};
    std::string resampling;
    if (options.resamples > 1) {
      one.interval = bootstrap_interval(*metric, one.statistics, options.resamples, options.seed);
      resampling = fmt::format("|bs:{}|seed:{}", options.resamples, options.seed);
    }
    one.signature = fmt::format("nrefs:{}{}|{}|version:2.6.0", text.references.front().size(), resampling,
                                metric->signature());
    scores.metrics.push_back(std::move(one));
  }
  return scores;
}

const MetricScore* TextScores::find(const std::string& key) const {
  for (const MetricScore& one : metrics) {
    if (one.key == key) return &one;
  }
  return nullptr;
}

json TextScores::to_json() const {
  json all = json::object();
  for (const MetricScore& one : metrics) {
    all[one.key] = {{"name", one.name},          {"score", one.score},        {"low", one.interval.low},
                    {"high", one.interval.high}, {"mean", one.interval.mean}, {"signature", one.signature}};
    if (!one.details.empty()) all[one.key]["details"] = one.details;
  }
  all["sentences"] = sentences;
  return all;
}

std::string TextScores::to_text() const {
  std::string text;
  for (const MetricScore& one : metrics) {
    text += fmt::format("{}|{} = {:.2f}", one.name, one.signature, one.score);
    if (one.signature.find("|bs:") != std::string::npos)
      text += fmt::format(" (μ = {:.2f} ± {:.2f})", one.interval.mean, one.interval.half_width());
    text += (one.details.empty() ? "" : " " + one.details) + "\n";
  }
  return text;
}

std::vector<double> sentence_scores(const Metric& metric, const std::vector<Statistics>& statistics) {
  std::vector<double> scores;
  scores.reserve(statistics.size());
  for (const Statistics& one : statistics) scores.push_back(metric.score(one));
  return scores;
}

std::vector<double> sentence_bleu(const ScoredText& text, BleuOptions options) {
  options.effective_order = true;
  const auto metric = make_bleu(options);
  return sentence_scores(*metric, count_all(*metric, text));
}

}  // namespace calque

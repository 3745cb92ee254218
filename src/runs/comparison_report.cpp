#include "calque/runs/comparison_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "calque/base/unicode.h"
#include "calque/base/units.h"
#include "calque/report/chart.h"
#include "calque/report/page.h"
#include "calque/runs/run_folder.h"

namespace calque {
namespace {

constexpr size_t sentences_shown = 8;

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (const auto& word : split_words(code_points(text))) words.push_back(to_utf8(word));
  return words;
}

// Words of `text` that are not part of the longest common subsequence with `other`, marked.
std::string marked_difference(const std::string& text, const std::string& other) {
  const auto a = words_of(text), b = words_of(other);
  std::vector<std::vector<int>> longest(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;)
      longest[i][j] =
          a[i] == b[j] ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
  }
  std::string html;
  for (size_t i = 0, j = 0; i < a.size(); ++i) {
    while (j < b.size() && a[i] != b[j] && longest[i][j + 1] >= longest[i + 1][j]) ++j;
    const bool common = j < b.size() && a[i] == b[j];
    if (common) ++j;
    html +=
        (html.empty() ? "" : " ") + (common ? escape_html(a[i]) : "<mark>" + escape_html(a[i]) + "</mark>");
  }
  return html.empty() ? "<i>(nothing)</i>" : html;
}

Series curve(const System& system, const char* x, const char* y, double x_factor) {
  Series series{system.evaluation.system, {}};
  if (!system.run) return series;
  for (const auto& line : read_metrics(*system.run / "metrics.jsonl")) {
    if (line.contains(y) && line[y].is_number() && line.contains(x))
      series.points.emplace_back(line[x].get<double>() * x_factor, line[y].get<double>());
  }
  return series;
}

void add_curves(Page& page, const Comparison& comparison, const char* value, const std::string& title) {
  struct Axis {
    const char* key;
    const char* label;
    double factor;
  };
  bool any = false;
  std::string charts;
  for (const Axis& axis :
       {Axis{"step", "step", 1}, Axis{"tokens", "tokens seen", 1}, Axis{"seconds", "minutes", 1.0 / 60}}) {
    LineChart chart{title, axis.label, {}};
    for (const System& system : comparison.systems)
      chart.series.push_back(curve(system, axis.key, value, axis.factor));
    for (const Series& series : chart.series) any = any || !series.points.empty();
    charts += line_chart(chart);
  }
  if (!any) return;
  page.heading(title);
  page.raw(charts);
}

// BLEU over the sentences of each length.
std::string bleu_by_length(const Comparison& comparison) {
  constexpr std::array<size_t, 6> limits = {5, 10, 15, 20, 30, 1'000'000};
  constexpr std::array<const char*, 6> labels = {"1–5", "6–10", "11–15", "16–20", "21–30", "over 30"};
  const auto bleu = make_bleu({});
  BarChart chart{"BLEU", "words of the source", {}, {}};
  for (const System& system : comparison.systems) chart.series.push_back(system.evaluation.system);
  for (size_t bucket = 0; bucket < limits.size(); ++bucket) {
    BarGroup group{labels[bucket], {}};
    size_t count = 0;
    for (const System& system : comparison.systems) {
      const auto& statistics = system.evaluation.scores.find("bleu")->statistics;
      std::vector<Statistics> inside;
      for (size_t i = 0; i < statistics.size(); ++i) {
        const size_t words =
            words_of(system.evaluation.test.sources.empty() ? system.evaluation.test.references[i]
                                                            : system.evaluation.test.sources[i])
                .size();
        if (words <= limits[bucket] && (bucket == 0 || words > limits[bucket - 1]))
          inside.push_back(statistics[i]);
      }
      count = inside.size();
      const double score = inside.empty() ? 0 : bleu->score(sum_of(inside));
      group.bars.push_back({score, score, score});
    }
    if (count == 0) continue;
    group.label += fmt::format(" ({})", count);
    chart.groups.push_back(group);
  }
  return bar_chart(chart);
}

void add_sentences(Page& page, const Comparison& comparison, const Difference& difference) {
  const Evaluation &a = comparison.systems[difference.a].evaluation,
                   &b = comparison.systems[difference.b].evaluation;
  const auto chrf = make_chrf({});
  const auto scores_a = sentence_scores(*chrf, a.scores.find("chrf")->statistics),
             scores_b = sentence_scores(*chrf, b.scores.find("chrf")->statistics);
  std::vector<size_t> order(scores_a.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t x, size_t y) { return scores_b[x] - scores_a[x] > scores_b[y] - scores_a[y]; });
  const auto show = [&](size_t i) {
    std::string html = "<table class=\"sides\">";
    if (!a.test.sources.empty())
      html += fmt::format("<tr><th>source</th><td>{}</td><td></td></tr>", escape_html(a.test.sources[i]));
    html += fmt::format("<tr><th>reference</th><td>{}</td><td></td></tr>", escape_html(a.test.references[i]));
    html +=
        fmt::format("<tr><th>{}</th><td>{}</td><td class=\"number\">{:.1f}</td></tr>", escape_html(a.system),
                    marked_difference(a.hypotheses[i], b.hypotheses[i]), scores_a[i]);
    html +=
        fmt::format("<tr><th>{}</th><td>{}</td><td class=\"number\">{:.1f}</td></tr></table>\n",
                    escape_html(b.system), marked_difference(b.hypotheses[i], a.hypotheses[i]), scores_b[i]);
    page.raw(html);
  };
  page.heading(fmt::format("Where {} wins most against {}", b.system, a.system));
  page.paragraph("Scores are chrF of the sentence; words that the other does not have are marked.");
  for (size_t i = 0; i < std::min(sentences_shown, order.size()); ++i) {
    if (scores_b[order[i]] > scores_a[order[i]]) show(order[i]);
  }
  page.heading(fmt::format("Where {} loses most against {}", b.system, a.system));
  for (size_t i = 0; i < std::min(sentences_shown, order.size()); ++i) {
    const size_t at = order[order.size() - 1 - i];
    if (scores_b[at] < scores_a[at]) show(at);
  }
}

}  // namespace

std::string comparison_page(const Comparison& comparison) {
  std::string names;
  for (const System& system : comparison.systems)
    names += (names.empty() ? "" : " · ") + system.evaluation.system;
  Page page(names);
  page.raw("<p class=\"verdict\">" + escape_html(comparison.verdict) + "</p>\n");
  page.facts({{"test set", comparison.systems.front().evaluation.test.name},
              {"sentences", format_count(comparison.systems.front().evaluation.scores.sentences)}});
  page.heading("Scores, with 95 % intervals");
  for (const char* key : {"bleu", "chrf", "ter"}) {
    const auto* first = comparison.systems.front().evaluation.scores.find(key);
    BarChart chart{first->name + (std::string(key) == "ter" ? " (lower is better)" : ""), "", {""}, {}};
    for (const System& system : comparison.systems) {
      const MetricScore* score = system.evaluation.scores.find(key);
      chart.groups.push_back(
          {system.evaluation.system, {{score->score, score->interval.low, score->interval.high}}});
    }
    page.raw(bar_chart(chart));
  }
  page.heading("The table");
  page.code(comparison.to_text());
  page.heading("BLEU by length of the sentence");
  page.raw(bleu_by_length(comparison));
  add_curves(page, comparison, "valid_loss", "Validation loss, nats per token");
  add_curves(page, comparison, "valid_bleu", "Validation BLEU");
  add_curves(page, comparison, "loss", "Training loss, nats per token");
  for (const Difference& difference : comparison.differences) add_sentences(page, comparison, difference);
  page.heading("Signatures");
  std::string signatures;
  for (const MetricScore& score : comparison.systems.front().evaluation.scores.metrics)
    signatures += score.name + "|" + score.signature + "\n";
  page.code(signatures);
  return page.html();
}

}  // namespace calque

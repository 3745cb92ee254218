#include "calque/train/tune_report.h"

#include <fmt/format.h>

#include <numbers>

#include "calque/base/text.h"
#include "calque/base/units.h"
#include "calque/report/chart.h"
#include "calque/report/page.h"
#include "calque/runs/run_folder.h"

namespace calque {
namespace {

constexpr size_t coloured = 6;  // trials with a colour of their own

std::string trial_label(const Trial& trial) { return fmt::format("trial {}", trial.number); }

// Bits per byte at the end of each rung.
Series rung_curve(const Trial& trial, BudgetUnit unit, bool muted) {
  Series series{trial_label(trial), {}, muted};
  for (const TrialResult& result : trial.results)
    series.points.emplace_back(result.amount(unit) / (unit == BudgetUnit::seconds ? 60 : 1),
                               result.bits_per_byte);
  return series;
}

// The training loss, with the validation set's tokens per byte to make it comparable.
Series training_curve(const TuneFolder& folder, const Trial& trial) {
  Series series{trial_label(trial), {}};
  const bool by_time = folder.state.unit == BudgetUnit::seconds;
  const double factor = trial.results.back().tokens_per_byte / std::numbers::ln2;
  for (const auto& line : read_metrics(folder.run(trial) / "metrics.jsonl")) {
    if (!line.contains("loss") || !line["loss"].is_number()) continue;
    series.points.emplace_back(by_time ? line.value("seconds", 0.0) / 60 : line.value("step", 0.0),
                               line["loss"].get<double>() * factor);
  }
  return series;
}

std::string trials_table(const TuneState& state) {
  std::string html =
      "<table class=\"claims\"><tr><th>settings</th><th>trial</th><th>bits per byte</th><th>steps</th>"
      "<th>minutes</th><th>epochs</th><th>state</th></tr>\n";
  for (const size_t i : state.ranking()) {
    const Trial& trial = state.trials[i];
    const std::string settings = trial.number == 0 ? trial.settings_text() : join(trial.settings, " ");
    std::string cells = "<td>–</td><td>–</td><td>–</td><td>–</td>";
    if (!trial.results.empty()) {
      const TrialResult& last = trial.results.back();
      cells = fmt::format("<td>{:.4f}</td><td>{}</td><td>{:.1f}</td><td>{:.2f}</td>", last.bits_per_byte,
                          format_count(last.step), last.seconds / 60, last.epochs);
    }
    const std::string how = !trial.failure.empty() ? "failed: " + trial.failure
                            : state.is_dropped(i) ? fmt::format("dropped after rung {}", trial.results.size())
                            : state.best() == i   ? "best"
                                                  : "";
    html += fmt::format("<tr><td>{}</td><td>{}</td>{}<td>{}</td></tr>\n", escape_html(settings), trial.number,
                        cells, escape_html(how));
  }
  return html + "</table>\n";
}

}  // namespace

std::string tune_page(const TuneFolder& folder) {
  const TuneState& state = folder.state;
  const char* axis = state.unit == BudgetUnit::seconds ? "minutes of training" : "step";
  Page page("Search " + folder.path().filename().string());
  std::vector<std::pair<std::string, std::string>> facts = {
      {"trials", std::to_string(state.trials.size())},
      {"rungs", fmt::format("{} of {}", state.complete_rungs(), state.rungs().size())},
      {"seed", std::to_string(state.seed)}};
  if (const auto best = state.best()) {
    const Trial& trial = state.trials[*best];
    facts.emplace_back("best", trial_label(trial));
    facts.emplace_back("bits per byte", fmt::format("{:.4f}", trial.results.back().bits_per_byte));
  }
  page.facts(facts);
  page.paragraph(
      fmt::format("All trials train equally long; the better half goes on to twice as much: {}. "
                  "They are ranked by bits per byte of the validation references, which can be "
                  "compared between vocabularies.",
                  plan_text(state.rungs(), state.unit)));
  LineChart rungs{"bits per byte, validation", axis, {}},
      training{"bits per byte, training (approximate)", axis, {}};
  for (const size_t i : state.ranking()) {
    const Trial& trial = state.trials[i];
    if (trial.results.empty()) continue;
    const bool muted = training.series.size() >= coloured;
    rungs.series.push_back(rung_curve(trial, state.unit, muted));
    if (!muted) training.series.push_back(training_curve(folder, trial));
  }
  page.heading("Validation loss at the end of each rung");
  page.raw(line_chart(rungs));
  page.heading("Training loss of the best trials");
  page.raw(line_chart(training));
  page.heading("Trials");
  page.raw(trials_table(state));
  return page.html();
}

}  // namespace calque

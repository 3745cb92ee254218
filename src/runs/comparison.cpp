#include "calque/runs/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/log.h"
#include "calque/base/text.h"
#include "calque/base/units.h"
#include "calque/runs/run_folder.h"

namespace calque {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// "p = 0.012", or "p < 0.0002" where no random assignment differed as much.
std::string p_text(double p) {
  return p <= 1.5 / (default_trials + 1) ? fmt::format("p < {:.2g}", 2.0 / (default_trials + 1))
                                         : fmt::format("p = {:.2g}", p);
}

std::string metric_verdict(const MetricDifference& d, const std::string& first, const std::string& other) {
  if (d.p_randomisation >= significance_level)
    return fmt::format("no significant difference in {} ({:+.1f}, {})", d.name, d.difference,
                       p_text(d.p_randomisation));
  const double size = std::abs(d.difference);
  return fmt::format("{} is better by {} {} ({})", d.second_is_better ? other : first,
                     size < 0.05 ? "less than 0.1" : fmt::format("{:.1f}", size), d.name,
                     p_text(d.p_randomisation));
}

std::string verdict_of(const Comparison& comparison) {
  const auto& systems = comparison.systems;
  if (systems.size() < 2) return "one system alone: nothing to compare with";
  const TestSet& test = systems.front().evaluation.test;
  const auto sentences = static_cast<size_t>(systems.front().evaluation.scores.sentences);
  std::vector<std::string> parts;
  for (const Difference& d : comparison.differences) {
    const std::string &first = systems[d.a].evaluation.system, &other = systems[d.b].evaluation.system;
    std::vector<std::string> metrics;
    for (const MetricDifference& metric : d.metrics) metrics.push_back(metric_verdict(metric, first, other));
    parts.push_back(fmt::format("{} and {}: {}", first, other, join(metrics, "; ")));
  }
  const std::string note = std::pow(2.0, 1.0 - static_cast<double>(sentences)) >= significance_level
                               ? "; they are too few for any difference to be significant"
                               : "";
  return fmt::format("{}. On the {} of {}, by the randomisation test{}.", join(parts, ". "),
                     format_count(static_cast<int64_t>(sentences), "sentence"), test.name, note);
}

// The keys in which the runs' configurations differ; systems without one have a dash.
std::vector<std::vector<std::string>> differing_settings(const std::vector<System>& systems) {
  std::vector<std::map<std::string, std::string>> all(systems.size());
  std::map<std::string, int> keys;
  for (size_t i = 0; i < systems.size(); ++i) {
    if (!systems[i].config) continue;
    RunConfig config = *systems[i].config;
    for (auto& [key, value] : config_values(fields(config), {})) {
      ++keys[key];
      all[i][key] = std::move(value);
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, count] : keys) {
    if (key == "run") continue;
    std::vector<std::string> row = {key};
    bool differs = false;
    const std::string* first = nullptr;
    for (size_t i = 0; i < systems.size(); ++i) {
      const auto found = all[i].find(key);
      row.push_back(found == all[i].end() ? "–" : found->second);
      if (found == all[i].end()) continue;
      differs = differs || (first != nullptr && *first != found->second);
      if (first == nullptr) first = &found->second;
    }
    if (differs) rows.push_back(std::move(row));
  }
  return rows;
}

// Columns aligned by their width on a terminal: the first to the left, the others to the right.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - display_width(row[i]), ' ');
      line += (i > 0 ? "  " : "") + (i == 0 ? row[i] + blanks : blanks + row[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace

void describe_training(System& system) {
  if (!system.run) return;
  const auto summary_file = *system.run / "summary.json";
  if (std::filesystem::exists(summary_file)) {
    const json summary = json::parse(read_file(summary_file), nullptr, false);
    if (summary.is_object())
      system.trained_parameters = summary.value("trained_parameters", system.parameters);
  }
  for (const json& line : read_metrics(*system.run / "metrics.jsonl")) {
    system.minutes = std::max(system.minutes, line.value("seconds", 0.0) / 60);
    system.tokens_seen = std::max(system.tokens_seen, line.value("tokens", int64_t{0}));
  }
}

namespace {

MetricDifference metric_difference(const char* key, const System& first, const System& other, uint32_t seed) {
  const auto metric = make_metric(key, {});
  const MetricScore &a = *first.evaluation.scores.find(key), &b = *other.evaluation.scores.find(key);
  MetricDifference d{key, a.name, b.score - a.score, (b.score > a.score) == metric->higher_is_better(), 1, 1};
  // The tests count larger differences than the one found; for identical translations there are none, and
  // they would call them significant.
  if (a.statistics == b.statistics) return d;
  d.p_bootstrap = paired_bootstrap(*metric, a.statistics, b.statistics, default_resamples, seed);
  d.p_randomisation =
      a.statistics.size() <= max_exact_sentences
          ? exact_randomisation(*metric, a.statistics, b.statistics)
          : approximate_randomisation(*metric, a.statistics, b.statistics, default_trials, seed);
  return d;
}

// Two systems of one name would make the table unreadable.
std::string unique_name(const std::string& name, const std::vector<System>& systems) {
  const auto taken = [&](const std::string& wanted) {
    return std::any_of(systems.begin(), systems.end(),
                       [&](const System& s) { return s.evaluation.system == wanted; });
  };
  std::string unique = name;
  for (int i = 2; taken(unique); ++i) unique = fmt::format("{} ({})", name, i);
  return unique;
}

}  // namespace

SystemSources find_systems(const fs::path& runs, const std::vector<std::string>& names) {
  SystemSources sources;
  for (const std::string& name : names)
    sources.push_back(fs::is_regular_file(name) ? std::nullopt : std::optional(find_model(runs, name)));
  return sources;
}

TestSet common_test_set(const SystemSources& sources) {
  std::optional<TestSet> common;
  std::string first;
  for (const auto& source : sources) {
    if (!source || !source->config || source->config->data.test.empty()) continue;
    TestSet own = default_test_set(*source);
    if (common && own.hash != common->hash) {
      throw UserError(
          fmt::format("{} and {} have different test sets: {} with {} sentences and {} with {}", first,
                      source->name, common->name, common->sources.size(), own.name, own.sources.size()),
          "name one for all of them: --data FILE.tsv");
    }
    if (!common) first = source->name;
    common = std::move(own);
  }
  if (!common)
    throw UserError("no test set: no run's configuration has data.test", "name one: --data FILE.tsv");
  return *common;
}

std::vector<System> evaluate_systems(const std::vector<std::string>& names, const SystemSources& sources,
                                     const TestSet& test, const OpenTranslator& open) {
  std::vector<System> systems;
  for (size_t i = 0; i < names.size(); ++i) {
    System system;
    if (const auto& source = sources[i]) {
      log::info("{}", names[i]);
      const auto translator = open(*source);
      system.evaluation = evaluate_model(*source, *translator, test, {});
      system.run = source->run;
      system.config = source->config;
      system.parameters = system.trained_parameters = parameter_count(*translator);
    } else {
      system.evaluation =
          score_translations(fs::path(names[i]).filename().string(), test, read_lines(names[i]), {});
    }
    system.evaluation.system = unique_name(system.evaluation.system, systems);
    systems.push_back(std::move(system));
  }
  return systems;
}

fs::path default_report_path(const fs::path& runs, const Comparison& comparison) {
  std::string name;
  for (const System& system : comparison.systems)
    name += (name.empty() ? "" : "-") + system.evaluation.system;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == ' '; }, '_');
  return runs / "comparisons" / name.substr(0, 100) / "report.html";
}

Comparison compare_systems(std::vector<System> systems, uint32_t seed) {
  Comparison comparison;
  comparison.systems = std::move(systems);
  for (System& system : comparison.systems) describe_training(system);
  for (size_t i = 1; i < comparison.systems.size(); ++i) {
    Difference difference{0, i, {}};
    for (const char* key : {"bleu", "chrf", "ter"})
      difference.metrics.push_back(
          metric_difference(key, comparison.systems.front(), comparison.systems[i], seed));
    comparison.differences.push_back(std::move(difference));
  }
  comparison.settings = differing_settings(comparison.systems);
  comparison.verdict = verdict_of(comparison);
  return comparison;
}

json Comparison::to_json() const {
  json all = {{"runs", json::array()}, {"comparisons", json::array()}, {"settings", json::object()}};
  for (const System& system : systems) {
    json one = {{"name", system.evaluation.system}, {"sentences", system.evaluation.scores.sentences}};
    for (const MetricScore& score : system.evaluation.scores.metrics) {
      one[score.key] = score.score;
      one[score.key + "_low"] = score.interval.low;
      one[score.key + "_high"] = score.interval.high;
      one[score.key + "_signature"] = score.signature;
    }
    one["parameters"] = system.parameters > 0 ? json(system.parameters) : json();
    one["trained_parameters"] = system.parameters > 0 ? json(system.trained_parameters) : json();
    one["tokens_seen"] = system.run ? json(system.tokens_seen) : json();
    one["minutes"] = system.run ? json(system.minutes) : json();
    one.update(system.evaluation.facts.to_json());
    all["runs"].push_back(one);
  }
  for (const Difference& d : differences) {
    json one = {{"a", systems[d.a].evaluation.system},
                {"b", systems[d.b].evaluation.system},
                {"p_bootstrap", d.bleu().p_bootstrap},
                {"p_randomisation", d.bleu().p_randomisation}};
    for (const MetricDifference& metric : d.metrics) {
      one[metric.key + "_difference"] = metric.difference;
      one["p_" + metric.key] = metric.p_randomisation;
    }
    all["comparisons"].push_back(one);
  }
  for (const auto& row : settings)
    all["settings"][row.front()] = std::vector<std::string>(row.begin() + 1, row.end());
  all["test_set"] = systems.front().evaluation.test.name;
  all["verdict"] = verdict;
  return all;
}

std::string Comparison::to_text() const {
  const bool trained =
      std::any_of(systems.begin(), systems.end(), [](const System& s) { return s.parameters > 0; });
  std::vector<std::vector<std::string>> rows = {
      {"", "BLEU", "95 %", "chrF", "95 %", "TER", "95 %", "BLEU difference", "p"}};
  if (trained) {
    const std::vector<std::string> more = {"loss",   "parameters", "trained",
                                           "tokens", "minutes",    "sentences/s"};
    rows.front().insert(rows.front().end(), more.begin(), more.end());
  }
  for (size_t i = 0; i < systems.size(); ++i) {
    const System& system = systems[i];
    std::vector<std::string> row = {system.evaluation.system};
    for (const char* key : {"bleu", "chrf", "ter"}) {
      const MetricScore* score = system.evaluation.scores.find(key);
      row.push_back(fmt::format("{:.1f}", score->score));
      row.push_back(fmt::format("{:.1f}–{:.1f}", score->interval.low, score->interval.high));
    }
    const auto difference =
        std::find_if(differences.begin(), differences.end(), [&](const Difference& d) { return d.b == i; });
    const bool first = difference == differences.end();
    row.push_back(first ? "" : fmt::format("{:+.1f}", difference->bleu().difference));
    row.push_back(first ? "" : fmt::format("{:.3g}", difference->bleu().p_randomisation));
    if (trained && system.parameters > 0) {
      row.push_back(fmt::format("{:.3f}", system.evaluation.facts.loss.value_or(0)));
      row.push_back(format_count(system.parameters));
      row.push_back(format_count(system.trained_parameters));
      row.push_back(system.run ? format_count(system.tokens_seen) : "–");
      row.push_back(system.run ? fmt::format("{:.1f}", system.minutes) : "–");
      row.push_back(fmt::format("{:.0f}", system.evaluation.facts.sentences_per_second));
    }
    rows.push_back(std::move(row));
  }
  const TestSet& test = systems.front().evaluation.test;
  std::string text = fmt::format("test set: {}, {}\n\n", test.name,
                                 format_count(systems.front().evaluation.scores.sentences, "sentence")) +
                     table(rows);
  if (!settings.empty()) {
    std::vector<std::vector<std::string>> shown = {{"differing settings"}};
    for (const System& system : systems) shown.front().push_back(system.evaluation.system);
    for (const auto& row : settings) {
      shown.emplace_back();
      for (const std::string& cell : row) shown.back().push_back(shorten(cell, 48));
    }
    text += "\n" + table(shown);
  }
  return text + "\n" + verdict + "\n";
}

}  // namespace calque

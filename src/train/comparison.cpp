#include "calque/train/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/text.h"
#include "calque/base/units.h"
#include "calque/train/run_folder.h"

namespace calque {
using nlohmann::json;

namespace {

double score_of(const System& system, const char* key) {
  const MetricScore* found = system.evaluation.scores.find(key);
  return found != nullptr ? found->score : 0;
}

// «p = 0.012», «p < 0.001» where no trial was as far apart.
std::string p_text(double p, int trials) {
  return p <= 1.5 / (trials + 1) ? fmt::format("p < {:.2g}", 2.0 / (trials + 1))
                                 : fmt::format("p = {:.2g}", p);
}

std::string verdict_of(const Comparison& comparison) {
  const auto& systems = comparison.systems;
  if (systems.size() < 2) return "one system alone: nothing to compare with";
  const auto sentences = format_count(systems.front().evaluation.scores.sentences);
  std::vector<std::string> parts;
  for (const Difference& d : comparison.differences) {
    const std::string &first = systems[d.a].evaluation.system, &other = systems[d.b].evaluation.system;
    if (d.p_randomisation >= real_below) {
      parts.push_back(fmt::format("{} and {}: no difference that {} sentences can show ({:+.1f} BLEU, {})",
                                  first, other, sentences, d.bleu,
                                  p_text(d.p_randomisation, default_trials)));
      continue;
    }
    const bool up = d.bleu > 0;
    parts.push_back(fmt::format("{} is better than {} by {:.1f} BLEU, {}", up ? other : first,
                                up ? first : other, std::abs(d.bleu),
                                p_text(d.p_randomisation, default_trials)));
  }
  return join(parts, "; ");
}

void flatten(const Fields& fields, const std::string& before, std::map<std::string, std::string>& values) {
  for (const Field& field : fields) {
    const std::string name = before + field.name;
    if (!field.children.empty()) {
      flatten(field.children, name + ".", values);
    } else if (field.write) {
      values[name] = YAML::Dump(field.write({}));
    }
  }
}

// What the runs' configurations differ in; systems without one have a dash.
std::vector<std::vector<std::string>> differing_settings(const std::vector<System>& systems) {
  std::vector<std::map<std::string, std::string>> all(systems.size());
  std::map<std::string, int> keys;
  for (size_t i = 0; i < systems.size(); ++i) {
    if (!systems[i].config) continue;
    RunConfig config = *systems[i].config;
    flatten(fields(config), "", all[i]);
    for (const auto& [key, value] : all[i]) ++keys[key];
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

// Columns aligned by what a terminal shows: the first to the left, the others to the right.
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

Comparison compare_systems(std::vector<System> systems, uint32_t seed) {
  Comparison comparison;
  comparison.systems = std::move(systems);
  for (System& system : comparison.systems) describe_training(system);
  const auto bleu = make_bleu({});
  for (size_t i = 1; i < comparison.systems.size(); ++i) {
    const auto& first = comparison.systems.front().evaluation.scores.find("bleu")->statistics;
    const auto& other = comparison.systems[i].evaluation.scores.find("bleu")->statistics;
    Difference difference{
        0, i, score_of(comparison.systems[i], "bleu") - score_of(comparison.systems.front(), "bleu"), 1, 1};
    // The tests count differences above the one found; for the same translations that is none, and they would
    // call it certain.
    if (first != other) {
      difference.p_bootstrap = paired_bootstrap(*bleu, first, other, default_resamples, seed);
      difference.p_randomisation = approximate_randomisation(*bleu, first, other, default_trials, seed);
    }
    comparison.differences.push_back(difference);
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
    one.update(system.evaluation.facts);
    all["runs"].push_back(one);
  }
  for (const Difference& d : differences) {
    all["comparisons"].push_back({{"a", systems[d.a].evaluation.system},
                                  {"b", systems[d.b].evaluation.system},
                                  {"bleu_difference", d.bleu},
                                  {"p_bootstrap", d.p_bootstrap},
                                  {"p_randomisation", d.p_randomisation}});
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
      {"", "BLEU", "95 %", "chrF", "95 %", "TER", "95 %", "difference", "p bootstrap", "p random."}};
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
    row.push_back(first ? "" : fmt::format("{:+.1f}", difference->bleu));
    row.push_back(first ? "" : fmt::format("{:.3g}", difference->p_bootstrap));
    row.push_back(first ? "" : fmt::format("{:.3g}", difference->p_randomisation));
    if (trained && system.parameters > 0) {
      row.push_back(fmt::format("{:.3f}", system.evaluation.facts.value("loss", 0.0)));
      row.push_back(format_count(system.parameters));
      row.push_back(format_count(system.trained_parameters));
      row.push_back(system.run ? format_count(system.tokens_seen) : "–");
      row.push_back(system.run ? fmt::format("{:.1f}", system.minutes) : "–");
      row.push_back(fmt::format("{:.0f}", system.evaluation.facts.value("sentences_per_second", 0.0)));
    }
    rows.push_back(std::move(row));
  }
  std::string text = table(rows);
  if (!settings.empty()) {
    std::vector<std::vector<std::string>> shown = {{"what they differ in"}};
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

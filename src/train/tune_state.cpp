#include "calque/train/tune_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "calque/base/text.h"
#include "calque/base/units.h"

namespace calque {

using nlohmann::json;

json TrialResult::to_json() const {
  return {{"bits_per_byte", bits_per_byte},
          {"tokens_per_byte", tokens_per_byte},
          {"step", step},
          {"tokens", tokens},
          {"epochs", epochs},
          {"seconds", seconds}};
}

TrialResult TrialResult::from_json(const json& j) {
  return {j.at("bits_per_byte"), j.at("tokens_per_byte"), j.at("step"),
          j.at("tokens"),        j.at("epochs"),          j.at("seconds")};
}

std::string Trial::name() const { return fmt::format("trial-{:02}", number); }

std::string Trial::settings_text() const {
  if (number == 0) return "the configuration as it is";
  std::vector<std::string> parts;
  for (const std::string& setting : settings) {
    const size_t dot = setting.rfind('.', setting.find('='));
    parts.push_back(dot == std::string::npos ? setting : setting.substr(dot + 1));
  }
  return join(parts, " ");
}

json Trial::to_json() const {
  json all = {{"number", number}, {"settings", settings}, {"results", json::array()}};
  if (!failure.empty()) all["failure"] = failure;
  for (const TrialResult& result : results) all["results"].push_back(result.to_json());
  return all;
}

Trial Trial::from_json(const json& j) {
  Trial trial{j.at("number"), j.at("settings"), j.value("failure", ""), {}};
  for (const json& result : j.at("results")) trial.results.push_back(TrialResult::from_json(result));
  return trial;
}

std::vector<size_t> TuneState::contenders(size_t rung) const {
  std::vector<size_t> all(trials.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (rung == 0) return all;
  all = contenders(rung - 1);
  std::erase_if(all, [&](size_t i) { return trials[i].results.size() < rung; });
  const auto loss = [&](size_t i) { return trials[i].results[rung - 1].bits_per_byte; };
  std::sort(all.begin(), all.end(),
            [&](size_t a, size_t b) { return std::pair(loss(a), a) < std::pair(loss(b), b); });
  all.resize(std::min(all.size(), static_cast<size_t>(rungs()[rung].trials)));
  return all;
}

bool TuneState::is_complete(size_t rung) const {
  const auto all = contenders(rung);
  return std::all_of(all.begin(), all.end(),
                     [&](size_t i) { return trials[i].results.size() > rung || !trials[i].failure.empty(); });
}

size_t TuneState::complete_rungs() const {
  size_t count = 0;
  while (count < rungs().size() && is_complete(count)) ++count;
  return count;
}

bool TuneState::is_dropped(size_t trial) const {
  const size_t done = trials[trial].results.size();
  if (!trials[trial].failure.empty() || done == 0 || done >= rungs().size() || done > complete_rungs())
    return false;
  const auto next = contenders(done);
  return std::find(next.begin(), next.end(), trial) == next.end();
}

std::vector<size_t> TuneState::ranking() const {
  std::vector<size_t> all(trials.size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::stable_sort(all.begin(), all.end(), [&](size_t left, size_t right) {
    const Trial &a = trials[left], &b = trials[right];
    if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
    if (a.results.size() != b.results.size()) return a.results.size() > b.results.size();
    return !a.results.empty() && a.results.back().bits_per_byte < b.results.back().bits_per_byte;
  });
  return all;
}

std::optional<size_t> TuneState::best() const {
  const size_t first = ranking().front();
  if (trials[first].results.empty() || !trials[first].failure.empty()) return std::nullopt;
  return first;
}

std::vector<std::string> TuneState::table(std::optional<size_t> training, const std::string& note) const {
  std::vector<std::string> lines = {
      fmt::format("{:>5}  {:>9}  {:>12}  {:<10}  {}", "trial", "bits/byte", "trained", "state", "settings")};
  const bool finished = complete_rungs() == rungs().size();
  for (const size_t i : ranking()) {
    const Trial& trial = trials[i];
    const bool any = !trial.results.empty(), failed = !trial.failure.empty();
    const std::string state = failed                                   ? "failed"
                              : training == i                          ? "training"
                              : is_dropped(i)                          ? "dropped"
                              : finished && best() == i                ? "best"
                              : trial.results.size() == rungs().size() ? "finished"
                                                                       : "waiting";
    const std::string trained = training == i ? note
                                : any         ? budget_text(trial.results.back().amount(unit), unit)
                                              : "–";
    lines.push_back(fmt::format("{:>5}  {:>9}  {:>12}  {:<10}  {}", trial.number,
                                any ? fmt::format("{:.4f}", trial.results.back().bits_per_byte) : "–",
                                trained, state, failed ? trial.failure : trial.settings_text()));
  }
  return lines;
}

json TuneState::to_json() const {
  json all = {{"version", 1},
              {"unit", unit == BudgetUnit::seconds ? "seconds" : "steps"},
              {"total", total},
              {"seed", seed},
              {"trials", json::array()}};
  for (const Trial& trial : trials) all["trials"].push_back(trial.to_json());
  return all;
}

TuneState TuneState::from_json(const json& j) {
  TuneState state;
  state.unit = j.at("unit") == "seconds" ? BudgetUnit::seconds : BudgetUnit::steps;
  state.total = j.at("total");
  state.seed = j.at("seed");
  for (const json& trial : j.at("trials")) state.trials.push_back(Trial::from_json(trial));
  return state;
}

}  // namespace calque

// The routes of the runs and the attention experiments. A run's name is looked up in the list of runs, so
// that no name reaches a file elsewhere.
#include <algorithm>

#include "api_json.h"
#include "calque/base/file.h"
#include "calque/base/units.h"
#include "calque/explore/experiment.h"
#include "calque/runs/run_folder.h"
#include "calque/runs/run_list.h"

namespace calque {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// The entry of this name in a folder.
fs::path entry_named(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename() == name && name != ".cache" && entry.is_directory()) return entry.path();
  }
  throw ApiError(404, "no such run or comparison");
}

HttpResponse report_page(const fs::path& file) {
  if (!fs::exists(file)) throw ApiError(404, "there is no report yet");
  return {200,
          read_file(file),
          "text/html; charset=utf-8",
          {{"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox"}}};
}

// The most that a page may ask for: each draw of n keys has n² numbers, and these take a few seconds.
constexpr double max_numbers = 250'000'000;

double highest(const std::string& name, double value) {
  if (name == "samples") return 50'000;
  if (name == "sentences" || name == "bleu") return 100;
  if (name == "n") return 256;
  return name == "alpha" ? 0.1 : std::max(40.0, 2 * value);
}

ParameterAnswer parameter_answer(const std::string& name, const ExperimentParameter& parameter) {
  ParameterAnswer answer;
  answer.name = name;
  answer.value = parameter.value;
  const bool is_small = parameter.value < 0.1;
  answer.low = is_small ? 1e-8 : name == "n" || name == "samples" ? 2.0 : name == "sentences" ? 1.0 : 0.0;
  answer.high = highest(name, parameter.value);
  answer.is_integer = name == "n" || name == "samples" || name == "sentences" || name == "bleu";
  answer.is_logarithmic = is_small || name == "samples";
  answer.meaning = parameter.meaning;
  return answer;
}

// What a request sets, as `calque explore --set` takes it.
std::vector<std::string> set_parameters(const Experiment& experiment, const json& given) {
  if (!given.is_object()) throw ApiError(400, "parameters: expected an object", "parameters");
  std::map<std::string, double> values;
  for (const auto& [name, parameter] : experiment.parameters) values[name] = parameter.value;
  std::vector<std::string> set;
  for (const auto& [name, value] : given.items()) {
    if (!value.is_number()) throw ApiError(400, name + ": expected a number", "parameters");
    const auto known = experiment.parameters.find(name);
    if (known != experiment.parameters.end() && value.get<double>() > highest(name, known->second.value))
      throw ApiError(400, fmt::format("{}: at most {:g}", name, highest(name, known->second.value)),
                     "parameters");
    values[name] = value.get<double>();
    set.push_back(fmt::format("{}={}", name, value.dump()));
  }
  if (experiment.parameters.contains("samples") && experiment.parameters.contains("n") &&
      values["samples"] * values["n"] * values["n"] > max_numbers)
    throw ApiError(400,
                   fmt::format("samples × n²: at most {}", format_count(static_cast<int64_t>(max_numbers))),
                   "parameters");
  return set;
}

}  // namespace

void Api::list_runs(const Shared& exchange, const Parameters&) {
  RunsAnswer answer;
  for (const RunSummary& run : calque::list_runs(options_.runs))
    answer.runs.push_back({run, fs::exists(options_.runs / run.name / "report.html")});
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(options_.runs / "comparisons", ignored)) {
    const std::string name = entry.path().filename().string();
    if (fs::exists(entry.path() / "report.html")) answer.comparisons.push_back({name, name});
  }
  exchange->respond({200, json_text(json_of(answer))});
}

void Api::show_run(const Shared& exchange, const Parameters& parameters) {
  const fs::path run = entry_named(options_.runs, parameters.at("name"));
  if (!fs::exists(run / "config.yaml")) throw ApiError(404, "no such run");
  const auto& query = exchange->request().query;
  const auto after = query.contains("after") ? parse_count(query.at("after")) : std::optional<int64_t>(-1);
  if (!after) throw ApiError(400, "after: expected a step", "after");
  RunAnswer answer;
  answer.name = parameters.at("name");
  for (const json& line : read_metrics(run / "metrics.jsonl")) {
    if (line.value("step", int64_t{0}) > *after) answer.metrics.push_back({line});
  }
  for (const RunSummary& one : calque::list_runs(options_.runs)) {
    if (one.name == answer.name) answer.state = one.state;
  }
  answer.config = read_file(run / "config.yaml");
  exchange->respond({200, json_text(json_of(answer))});
}

void Api::run_report(const Shared& exchange, const Parameters& parameters) {
  exchange->respond(report_page(entry_named(options_.runs, parameters.at("name")) / "report.html"));
}

void Api::comparison_report(const Shared& exchange, const Parameters& parameters) {
  exchange->respond(
      report_page(entry_named(options_.runs / "comparisons", parameters.at("name")) / "report.html"));
}

void Api::list_experiments(const Shared& exchange, const Parameters&) {
  ExperimentsAnswer answer;
  for (const Experiment& one : all_experiments()) {
    ListedExperiment& listed = answer.experiments.emplace_back();
    listed.name = one.name;
    listed.summary = one.summary;
    listed.needs_model = one.needs_model;
    for (const auto& [name, parameter] : one.parameters)
      listed.parameters.push_back(parameter_answer(name, parameter));
  }
  exchange->respond({200, json_text(json_of(answer))});
}

void Api::show_experiment(const Shared& exchange, const Parameters& parameters) {
  const std::string& name = parameters.at("name");
  JsonReader body(exchange->request().body);
  const json* given = body.take("parameters");
  ExperimentOptions options;
  options.runs = options_.runs;
  options.model = body.text("model");
  body.finish();
  const auto& all = all_experiments();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Experiment& one) { return one.name == name; });
  if (found == all.end()) throw ApiError(404, "no such experiment");
  if (found->needs_model && !models_.find(options.model)) throw ApiError(404, "no such model", "model");
  if (!found->needs_model) options.model.clear();
  if (found->needs_model && options.model.empty()) options.model = models_.default_name();
  const auto set = set_parameters(*found, given ? *given : json::object());
  options.check = check_of(exchange);
  const ExperimentAnswer answer{name, run_experiment(name, set, options)};
  exchange->respond({200, json_text(json_of(answer))});
}

}  // namespace calque

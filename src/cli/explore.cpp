// calque explore: the attention experiments.
#include <filesystem>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/log.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"
#include "calque/explore/experiment.h"
#include "calque/report/page.h"

namespace calque::cli {
namespace {

struct ExploreOptions {
  std::string name;
  std::vector<std::string> set;
  std::filesystem::path html;
  std::filesystem::path figures;
  ExperimentOptions experiment;
  std::string device = "cpu";
  bool as_json = false;
};

void list_experiments(bool as_json) {
  nlohmann::json all = nlohmann::json::array();
  for (const Experiment& one : all_experiments()) {
    std::string shown;
    nlohmann::json values = nlohmann::json::object();
    for (const auto& [name, parameter] : one.parameters) values[name] = parameter.value;
    all.push_back({{"name", one.name}, {"summary", one.summary}, {"parameters", values}});
    if (as_json) continue;
    for (const auto& [name, parameter] : one.parameters)
      shown += fmt::format("{}{}={:g}", shown.empty() ? "" : " ", name, parameter.value);
    print(fmt::format("{:<16} {}{}\n", one.name, one.summary, shown.empty() ? "" : "  [" + shown + "]"));
  }
  if (as_json) print_json(all);
}

void add_to_page(Page& page, const std::string& name, const ExperimentResult& result) {
  page.heading(name);
  page.paragraph(result.explanation);
  std::string table =
      "<table class=\"claims\"><tr><th>claim</th><th>expected</th><th>found</th><th></th></tr>\n";
  for (const Claim& claim : result.claims) {
    table += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", escape_html(claim.claim),
                         escape_html(claim.expected), escape_html(claim.found), claim.holds ? "✓" : "✗");
  }
  page.raw(table + "</table>\n");
  for (const Figure& figure : result.figures) {
    page.paragraph(figure.title);
    page.raw(figure.html);
  }
}

void run_explore(ExploreOptions& options) {
  options.experiment.runs = runs_folder();
  options.experiment.device = chosen_device(options.device);
  if (options.name.empty() && options.html.empty() && options.figures.empty())
    return list_experiments(options.as_json);
  if (options.name.empty() && !options.set.empty())
    throw UserError("--set needs an experiment: each has its own parameters");
  std::vector<std::string> names;
  for (const Experiment& one : all_experiments()) {
    if (options.name.empty() && (!one.needs_model || !options.experiment.model.empty()))
      names.push_back(one.name);
  }
  if (!options.name.empty()) names = {options.name};
  Page page("Attention experiments");
  bool holds = true;
  for (const std::string& name : names) {
    const ExperimentResult result = run_experiment(name, options.set, options.experiment);
    options.as_json ? print_json(to_json(name, result))
                    : print(to_text(name, result) + (names.size() > 1 ? "\n" : ""));
    holds = holds && result.holds();
    add_to_page(page, name, result);
    if (options.figures.empty()) continue;
    std::filesystem::create_directories(options.figures);
    for (const Figure& figure : result.figures)
      write_file(options.figures / (figure.name + ".svg"), standalone_figure(figure.title, figure.html));
  }
  if (!options.html.empty()) {
    write_file(options.html, page.html());
    log::info("{}: written", options.html.string());
  }
  if (!holds) {
    log::error("a claim does not hold");
    throw Exit{exit_failed};
  }
}

}  // namespace

void add_explore_command(CLI::App& app) {
  static ExploreOptions options;
  CLI::App* command =
      add_command(app, "explore", "The attention experiments, with their numbers and pictures",
                  "calque explore single-head --set t=8 --html single.html");
  command->add_option("EXPERIMENT", options.name, "Its name; without one they are listed")
      ->type_name(wants_experiment);
  command->add_option("--set", options.set, "Set a parameter of the experiment, such as t=8")
      ->type_name("NAME=VALUE");
  command->add_option("--seed", options.experiment.seed, "Random seed")->capture_default_str();
  command->add_option("--model", options.experiment.model, "For `trained`: the run to look at")
      ->type_name(wants_run);
  command
      ->add_option("--data", options.experiment.data,
                   "For `trained`: pairs to look at; default: the run's data.valid")
      ->type_name("FILE");
  add_device_option(*command, options.device);
  command
      ->add_option("--html", options.html,
                   "Write a page with pictures; without an experiment, of all of them")
      ->type_name("FILE");
  command->add_option("--figures", options.figures, "Write each figure as an SVG file")->type_name("DIR");
  command->add_flag("--json", options.as_json, "Print values and claims as JSON");
  command->callback([] { run_explore(options); });
}

}  // namespace calque::cli

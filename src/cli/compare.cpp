// calque compare: runs, checkpoints and files of translations side by side.
#include "calque/train/comparison.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/log.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"
#include "calque/cli/test_set.h"
#include "calque/train/comparison_report.h"

namespace calque::cli {
namespace {

struct CompareOptions {
  std::vector<std::string> systems;
  TestSetOptions test;
  ModelOptions running;
  std::filesystem::path report;
  bool as_json = false;
};

bool is_text_file(const std::string& name) { return std::filesystem::is_regular_file(name); }

// Names that stand for two systems would make the table unreadable.
std::string unique_name(const std::string& name, const std::vector<System>& systems) {
  const auto taken = [&](const std::string& wanted) {
    return std::any_of(systems.begin(), systems.end(),
                       [&](const System& s) { return s.evaluation.system == wanted; });
  };
  std::string unique = name;
  for (int i = 2; taken(unique); ++i) unique = fmt::format("{} ({})", name, i);
  return unique;
}

void run_compare(CompareOptions& options) {
  std::vector<std::optional<ModelSource>> sources;
  const RunConfig* config = nullptr;
  for (const std::string& name : options.systems) {
    sources.push_back(is_text_file(name) ? std::nullopt : std::optional(find_model(runs_folder(), name)));
  }
  for (const auto& source : sources) {
    if (config == nullptr && source && source->config) config = &*source->config;
  }
  const TestSet test = open_test_set(options.test, config);
  std::vector<System> systems;
  for (size_t i = 0; i < options.systems.size(); ++i) {
    System system;
    if (sources[i]) {
      log::info("{}", options.systems[i]);
      const auto translator = open_model(*sources[i], options.running);
      system.evaluation = evaluate_model(*sources[i], *translator, test, {});
      system.run = sources[i]->run;
      system.config = sources[i]->config;
      system.parameters = system.trained_parameters = parameter_count(*translator);
    } else {
      system.evaluation = score_translations(std::filesystem::path(options.systems[i]).filename().string(),
                                             test, read_lines(options.systems[i]), {});
    }
    system.evaluation.system = unique_name(system.evaluation.system, systems);
    systems.push_back(std::move(system));
  }
  const Comparison comparison = compare_systems(std::move(systems));
  options.as_json ? print_json(comparison.to_json()) : print(comparison.to_text());
  std::filesystem::path report = options.report;
  if (report.empty()) {
    std::string name;
    for (const System& system : comparison.systems)
      name += (name.empty() ? "" : "-") + system.evaluation.system;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '/' || c == ' '; }, '_');
    report = runs_folder() / "comparisons" / name.substr(0, 100) / "report.html";
    std::filesystem::create_directories(report.parent_path());
  }
  write_file(report, comparison_page(comparison));
  log::info("{}: the same with curves and sentences side by side", report.string());
}

}  // namespace

void add_compare_command(CLI::App& app) {
  static CompareOptions options;
  CLI::App* command = add_command(
      app, "compare", "Runs, checkpoints and files of translations side by side, and whether they differ",
      "calque compare demo other-run --data data/everyday/test.tsv");
  command
      ->add_option("SYSTEMS", options.systems, "Runs, checkpoints, or text files with a translation a line")
      ->required()
      ->type_name(wants_run);
  add_test_set_options(*command, options.test);
  add_search_options(*command, options.running);
  add_thread_options(*command, options.running);
  command
      ->add_option("--report", options.report, "Where the page goes; default: runs/comparisons/…/report.html")
      ->type_name("FILE");
  command->add_flag("--json", options.as_json, "The comparison as JSON");
  command->callback([] { run_compare(options); });
}

}  // namespace calque::cli

// calque compare: runs, checkpoints and files of translations side by side.
#include "calque/runs/comparison.h"

#include "calque/base/file.h"
#include "calque/base/log.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"
#include "calque/cli/test_set_options.h"
#include "calque/runs/comparison_report.h"

namespace calque::cli {
namespace {

struct CompareOptions {
  std::vector<std::string> systems;
  TestSetOptions test;
  ModelOptions running;
  std::filesystem::path report;
  bool as_json = false;
};

void run_compare(const CompareOptions& options) {
  const SystemSources sources = find_systems(runs_folder(), options.systems);
  const TestSet test = open_test_set(options.test, [&] { return common_test_set(sources); });
  const Comparison comparison =
      compare_systems(evaluate_systems(options.systems, sources, test, [&](const ModelSource& source) {
        return open_model(source, options.running);
      }));
  options.as_json ? print_json(comparison.to_json()) : print(comparison.to_text());
  const auto report =
      options.report.empty() ? default_report_path(runs_folder(), comparison) : options.report;
  write_file(report, comparison_page(comparison));
  log::info("{}: this comparison as a page, with curves and sentences side by side", report.string());
}

}  // namespace

void add_compare_command(CLI::App& app) {
  static CompareOptions options;
  CLI::App* command = add_command(
      app, "compare", "Compare runs, checkpoints and files of translations, with significance tests",
      "calque compare demo other-run --data data/everyday/test.tsv");
  command
      ->add_option("SYSTEMS", options.systems,
                   "Runs, checkpoints, or text files with one translation per line")
      ->required()
      ->type_name(wants_run);
  add_test_set_options(*command, options.test);
  add_decode_options(*command, options.running);
  add_thread_options(*command, options.running);
  command->add_option("--report", options.report, "Page to write; default: runs/comparisons/…/report.html")
      ->type_name("FILE");
  command->add_flag("--json", options.as_json, "Print the comparison as JSON");
  command->callback([] { run_compare(options); });
}

}  // namespace calque::cli

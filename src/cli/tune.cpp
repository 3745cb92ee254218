// calque tune: a search for good settings.
#include "calque/train/tuner.h"

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/units.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"
#include "calque/train/search_space.h"

namespace calque::cli {
namespace {

struct TuneCommandOptions {
  TuneOptions tune;
  std::string minutes;
  bool show_space = false;
  bool as_json = false;
};

void report_search(const TuneResult& result, const TuneCommandOptions& options) {
  if (options.as_json) {
    print_json(result.to_json());
  } else {
    for (const std::string& line : result.state.table()) print(line + "\n");
  }
  if (result.interrupted) {
    std::string command = "calque tune " + options.tune.config.string();
    for (const std::string& one : options.tune.overrides) command += " " + one;
    log::info("interrupted; everything is saved: `{} --resume` continues", command);
    throw Exit{exit_interrupted};
  }
  log::info("{}: the trials and their curves", result.report.string());
  log::info("{}: the best configuration; `calque train {}` trains it", result.best.string(),
            result.best.string());
}

void run_tune(TuneCommandOptions& options) {
  options.tune.runs = runs_folder();
  if (options.show_space)
    return print(default_space(read_run_config(options.tune.config, options.tune.overrides)));
  if (options.tune.resume && options.tune.fresh) throw UserError("--resume and --fresh exclude each other");
  if (!options.minutes.empty()) {
    const auto seconds = parse_seconds(options.minutes, 60);
    if (!seconds || *seconds <= 0)
      throw UserError(fmt::format("--minutes {}: not a duration", options.minutes),
                      "for example 30, 90s or 2h");
    options.tune.minutes = *seconds / 60;
  }
  report_search(tune(options.tune), options);
}

}  // namespace

void add_tune_command(CLI::App& app) {
  static TuneCommandOptions options;
  CLI::App* command =
      add_command(app, "tune", "Search for good settings: learning rate, batch, vocabulary, shape, …",
                  "calque tune configs/demo.yaml --minutes 20");
  command->add_option("CONFIG", options.tune.config, "Configuration to start from")
      ->required()
      ->type_name(wants_config);
  command->add_option("OVERRIDES", options.tune.overrides, "Values that override the file's")
      ->type_name(wants_overrides);
  add_training_device_option(*command, options.tune.overrides);
  command
      ->add_option("--minutes", options.minutes,
                   "Training time of all trials together, in minutes or with a unit: 90s, 2h")
      ->type_name("TIME");
  command
      ->add_option("--steps", options.tune.steps,
                   "Instead of --minutes: steps of all trials together, which is repeatable")
      ->check(CLI::PositiveNumber);
  command->add_option("--trials", options.tune.trials, "Configurations to try; default: 16")
      ->check(CLI::Range(2, 10'000));
  command
      ->add_option("--space", options.tune.space, "YAML file of the keys to vary; default: see --show-space")
      ->type_name("FILE");
  command->add_flag("--show-space", options.show_space,
                    "Print the default space of this configuration, to edit");
  command->add_option("--seed", options.tune.seed, "Chooses the trials; default: 1")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--resume", options.tune.resume, "Continue a search that was stopped");
  command->add_flag("--fresh", options.tune.fresh, "Delete the search if it exists and start again");
  command->add_flag("--json", options.as_json, "Print the result as JSON");
  command->callback([] { run_tune(options); });
}

}  // namespace calque::cli

// calque train, calque resume: a run from its configuration, or from where it stopped.
#include <algorithm>
#include <functional>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/log.h"
#include "calque/base/text.h"
#include "calque/base/units.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"
#include "calque/runs/run_list.h"
#include "calque/train/dry_run.h"
#include "calque/train/overfit_check.h"
#include "calque/train/rank_check.h"
#include "calque/train/resume_check.h"
#include "calque/train/training_loop.h"

namespace calque::cli {
namespace {

namespace fs = std::filesystem;

struct TrainCommandOptions {
  fs::path config;
  std::string run;
  std::vector<std::string> overrides;
  TrainingOptions training;
  bool auto_resume = false;
  bool dry_run = false;
  bool as_json = false;
};

void print_estimate(const TrainingEstimate& e) {
  const auto line = [](const char* name, const std::string& value) {
    print(fmt::format("{:<18}{:>14}\n", name, value));
  };
  line("parameters", format_count(e.parameters));
  line("  embedding", format_count(e.embedding));
  line("  attention", format_count(e.attention));
  line("  MLP", format_count(e.mlp));
  line("  norms", format_count(e.norms));
  line("  output", e.output == 0 ? "tied" : format_count(e.output));
  line("pairs", format_count(e.pairs));
  line("tokens per epoch", format_count(std::llround(e.tokens_per_epoch)));
  line("steps per epoch", format_count(e.steps_per_epoch));
  line("steps in total", format_count(std::llround(e.steps)));
  line("tokens per second", format_count(std::llround(e.tokens_per_second)));
  line("time, about", format_seconds(e.minutes * 60));
  line("memory, about", format_bytes(e.peak_bytes));
}

void report_overfit(const OverfitResult& result, bool as_json) {
  if (as_json) print_json(result.to_json());
  if (result.interrupted) throw Exit{exit_interrupted};
  if (!result.overfitted) {
    log::error("the model cannot overfit one batch: loss {:.3f} → {:.3f} in {} steps", result.first_loss,
               result.loss, result.steps);
    throw Exit{exit_failed};
  }
  log::info("the model can learn: loss {:.3f} → {:.3f} on one batch in {} steps", result.first_loss,
            result.loss, result.steps);
}

void report_training(const TrainingResult& result, const TrainCommandOptions& options) {
  if (options.as_json && options.training.group->is_first()) print_json(result.to_json());
  if (result.end == TrainingEnd::interrupted) throw Exit{exit_interrupted};
  log::info("{}: checkpoints/best is the model, report.html shows how it went", result.run.string());
}

// A run named on the command line: under the runs folder, or a path.
fs::path find_run(const std::string& name) {
  for (const fs::path& folder : {runs_folder() / name, fs::path(name)}) {
    if (!fs::exists(folder / "config.yaml")) continue;
    return folder.has_filename() ? folder : folder.parent_path();  // runs/demo/ too
  }
  std::vector<std::string> known;
  for (const RunSummary& one : list_runs(runs_folder())) known.push_back(one.name);
  throw UserError(
      fmt::format("{}: no such run{}", (runs_folder() / name).string(), did_you_mean(name, known)),
      "`calque runs` lists them");
}

// Only rank 0 needs the run's folder: the others get the configuration from it.
void resume(const std::function<fs::path()>& find, const TrainCommandOptions& options) {
  TrainingOptions training = options.training;
  training.resume = true;
  RunConfig config;
  const std::string text = training.group->from_first([&] {
    const fs::path run = find();
    config = read_stored_run_config(run, options.overrides);
    config.run = fs::absolute(run).lexically_normal().filename().string();
    training.runs = fs::absolute(run).lexically_normal().parent_path();
    if (fs::equivalent(training.runs, runs_folder())) training.runs = runs_folder();
    return show_config(fields(config), {}, false);
  });
  if (!training.group->is_first()) read_config_text(fields(config), text, "the run of rank 0", {}, {});
  report_training(train(config, training), options);
}

// The stored configuration counts; what the file says otherwise is reported.
fs::path find_run_of_file(const TrainCommandOptions& options) {
  const RunConfig file = read_run_config(options.config, options.overrides);
  const fs::path run = runs_folder() / file.run;
  if (!fs::exists(run / "config.yaml"))
    throw UserError(fmt::format("{}: there is no such run to resume", run.string()), "leave --resume out");
  for (const ConfigChange& change : changed_keys(read_stored_run_config(run, options.overrides), file)) {
    if (change.key == "run" || (change.key == "train.precision" && change.now == "auto")) continue;
    // The base model of adapters is kept in the run.
    if (change.key == "model.init_from" && fs::exists(run / "base")) continue;
    log::warn("{}: the run has {}, {} has {}; kept as it is (put {}=… on the command line to change it)",
              change.key, change.before, options.config.string(), change.now, change.key);
  }
  return run;
}

std::string named_run(const std::vector<std::string>& overrides) {
  for (const std::string& one : overrides) {
    if (one.starts_with("run=")) return one.substr(4);
  }
  throw UserError("--resume without a configuration needs the run's name", "`calque resume RUN` is shorter");
}

// True if there is a run to continue. A restart after --fresh continues what its own job has begun: an
// earlier attempt may have died before it deleted the old run.
bool continues(const TrainCommandOptions& options, const World& world) {
  const fs::path run = runs_folder() / read_run_config(options.config, options.overrides).run;
  if (!fs::exists(run / "config.yaml")) return false;
  if (!options.training.fresh || world.job.empty()) return true;
  return fs::exists(run / "job") && read_file(run / "job") == world.job;
}

void check_arguments(TrainCommandOptions& options) {
  if (options.config.string().find('=') != std::string::npos && !fs::exists(options.config)) {
    options.overrides.insert(options.overrides.begin(),
                             options.config.string());  // no configuration was given
    options.config.clear();
  }
  if (options.config.empty()) {  // `train train.steps=5 my.yaml`
    const auto file = std::find_if(options.overrides.begin(), options.overrides.end(),
                                   [](const std::string& one) { return one.find('=') == std::string::npos; });
    if (file != options.overrides.end()) {
      options.config = *file;
      options.overrides.erase(file);
    }
  }
  if (options.training.resume && options.training.fresh)
    throw UserError("--resume and --fresh exclude each other");
  if (options.config.empty() && !options.training.resume)
    throw UserError("CONFIG is missing", "for example configs/demo.yaml");
  if (!options.config.empty() && !fs::exists(options.config) &&
      fs::exists(fs::path("configs") / (options.config.string() + ".yaml")))
    throw UserError(fmt::format("{}: no such file", options.config.string()),
                    fmt::format("did you mean configs/{}.yaml?", options.config.string()));
  if (!options.config.empty() && !fs::exists(options.config) &&
      fs::exists(runs_folder() / options.config / "config.yaml"))
    throw UserError(fmt::format("{}: no such configuration file", options.config.string()),
                    fmt::format("`calque resume {}` continues the run of this name",
                                shell_quoted(options.config.string())));
}

// What decides which operations follow: compared before the first of them.
Claims claims(const TrainCommandOptions& options) {
  const auto flag = [](bool given) { return given ? "given" : "not given"; };
  return {{"command", "train"},
          {"--resume", flag(options.training.resume)},
          {"--fresh", flag(options.training.fresh)},
          {"--auto-resume", flag(options.auto_resume)}};
}

void print_dry_run(const TrainCommandOptions& options) {
  const RunConfig config = read_run_config(options.config, options.overrides);
  for (const std::string& warning : config_warnings(config)) log::warn("{}", warning);
  const TrainingEstimate estimate = estimate_training(config, options.training);
  options.as_json ? print_json(estimate.to_json()) : print_estimate(estimate);
}

void run_training(TrainCommandOptions& options) {
  options.training.runs = runs_folder();
  if (!options.dry_run)
    options.training.group = std::make_shared<ProcessGroup>(world_of_this_process(), claims(options));
  ProcessGroup& group = *options.training.group;
  const World& world = group.world();
  group.everywhere([&] { check_arguments(options); });
  options.training.job = world.job;
  if (options.auto_resume || world.restarts > 0) {
    options.training.resume =
        group.from_first([&] { return continues(options, world) ? "resume" : ""; }) == "resume";
    if (options.training.resume) options.training.fresh = false;
  }
  if (options.training.resume) {
    return resume(
        [&] {
          return options.config.empty() ? find_run(named_run(options.overrides)) : find_run_of_file(options);
        },
        options);
  }
  if (options.dry_run) return print_dry_run(options);
  RunConfig config;
  group.everywhere([&] { config = read_run_config(options.config, options.overrides); });
  check_settings_alike(group, config);
  if (config.train.overfit_batch)
    return report_overfit(overfit_batch(config, options.training), options.as_json);
  report_training(train(config, options.training), options);
}

}  // namespace

void add_train_command(CLI::App& app) {
  static TrainCommandOptions options;
  CLI::App* command = add_command(app, "train", "Train a model from a configuration",
                                  "calque train configs/demo.yaml train.steps=200");
  command->add_option("CONFIG", options.config, "Configuration file")->type_name(wants_config);
  command->add_option("OVERRIDES", options.overrides, "Values that override the file's")
      ->type_name(wants_overrides);
  add_training_device_option(*command, options.overrides);
  command->add_flag("--resume", options.training.resume,
                    "Continue a run that was stopped; see `calque resume`");
  command->add_flag("--fresh", options.training.fresh, "Delete the run if it exists and start again");
  command->add_flag("--auto-resume", options.auto_resume,
                    "Continue the run if it exists, else start it: for jobs that a scheduler starts again");
  command->add_flag("--dry-run", options.dry_run,
                    "Estimate parameters, steps, time and memory from a few timed steps, without training");
  command->add_flag("--json", options.as_json, "Print the result as JSON");
  command->callback([] { run_training(options); });
}

void add_resume_command(CLI::App& app) {
  static TrainCommandOptions options;
  CLI::App* command =
      add_command(app, "resume", "Continue a run that was stopped, with its stored configuration",
                  "calque resume demo train.steps=3000");
  command->add_option("RUN", options.run, "A run by its name or folder")->required()->type_name(wants_run);
  command->add_option("OVERRIDES", options.overrides, "Values to change from here on")
      ->type_name(wants_overrides);
  add_training_device_option(*command, options.overrides);
  command->add_flag("--json", options.as_json, "Print the result as JSON");
  command->callback([] {
    const Claims claims = {{"command", "resume"},
                           {"overrides", fmt::format("{}", fmt::join(options.overrides, " "))}};
    options.training.group = std::make_shared<ProcessGroup>(world_of_this_process(), claims);
    resume(
        [] {
          const fs::path run = find_run(options.run);
          for (const std::string& one : options.overrides) {
            if (one.starts_with("run=") && one.substr(4) != run.filename())
              throw UserError(fmt::format("command line: {}: a run keeps its name on resume", one));
          }
          return run;
        },
        options);
  });
}

}  // namespace calque::cli

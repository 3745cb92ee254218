// calque train: a run from its configuration.
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/units.h"
#include "calque/cli/command.h"
#include "calque/train/training.h"
#include "calque/train/trial.h"

namespace calque::cli {
namespace {

using nlohmann::json;

struct TrainCommandOptions {
  std::filesystem::path config;
  std::vector<std::string> overrides;
  TrainingOptions training;
  bool dry_run = false;
  bool as_json = false;
};

void print_estimate(const json& e) {
  const json& p = e["parameters"];
  const auto count = [](const json& value) { return format_count(value.get<int64_t>()); };
  print(
      fmt::format("parameters        {:>14}\n  embedding       {:>14}\n  attention       {:>14}\n  "
                  "feed-forward    {:>14}\n  norms           {:>14}\n",
                  count(p["total"]), count(p["embedding"]), count(p["attention"]), count(p["feed_forward"]),
                  count(p["norms"])));
  print(fmt::format("  output          {:>14}\n", p["output"] == 0 ? "tied" : count(p["output"])));
  print(fmt::format(
      "pairs             {:>14}\ntokens an epoch   {:>14}\nsteps an epoch    {:>14}\nsteps in all      "
      "{:>14}\n",
      count(e["pairs"]), count(e["tokens_per_epoch"]), count(e["steps_per_epoch"]), count(e["steps"])));
  print(fmt::format("tokens a second   {:>14}\ntime, about       {:>14}\nmemory, about     {:>14}\n",
                    format_count(static_cast<int64_t>(e["tokens_per_second"].get<double>())),
                    format_seconds(e["minutes"].get<double>() * 60),
                    format_bytes(e["peak_bytes"].get<int64_t>())));
}

void run_training(TrainCommandOptions& options) {
  options.training.runs = runs_folder();
  const RunConfig config = read_run_config(options.config, options.overrides);
  if (options.training.resume && options.training.fresh)
    throw UserError("--resume and --fresh exclude each other");
  if (options.dry_run) {
    const json estimate = estimate_training(config, options.training);
    options.as_json ? print_json(estimate) : print_estimate(estimate);
    return;
  }
  const TrainingResult result = train(config, options.training);
  if (options.as_json) print_json(result.summary);
  const json& s = result.summary;
  switch (result.end) {
    case TrainingEnd::overfitted:
      log::info("the model can learn: loss {:.3f} → {:.3f} on one batch in {} steps",
                s["first_loss"].get<double>(), s["loss"].get<double>(), s["steps"].get<int64_t>());
      return;
    case TrainingEnd::not_overfitted:
      log::error("the model did not learn one batch by heart: loss {:.3f} → {:.3f} in {} steps",
                 s["first_loss"].get<double>(), s["loss"].get<double>(), s["steps"].get<int64_t>());
      throw Exit{exit_failed};
    case TrainingEnd::interrupted:
      throw Exit{exit_interrupted};
    case TrainingEnd::patience:
      log::info("validation did not improve any more");
      break;
    case TrainingEnd::limit:
      break;
  }
  log::info("{}: checkpoints/best is the model, report.html shows how it went", result.run.string());
}

}  // namespace

void add_train_command(CLI::App& app) {
  static TrainCommandOptions options;
  CLI::App* command = add_command(app, "train", "Train a model from a configuration",
                                  "calque train configs/demo.yaml train.steps=200");
  command->add_option("CONFIG", options.config, "Configuration file")->required()->type_name(wants_config);
  command->add_option("OVERRIDES", options.overrides, "Values that win over the file's")
      ->type_name(wants_overrides);
  command->add_flag("--resume", options.training.resume, "Go on with a run that was stopped");
  command->add_flag("--fresh", options.training.fresh, "Delete the run if it exists and begin anew");
  command->add_flag("--dry-run", options.dry_run,
                    "Parameters, steps, time and memory, from a few timed steps; trains nothing");
  command->add_flag("--json", options.as_json, "The result as JSON");
  command->callback([] { run_training(options); });
}

}  // namespace calque::cli

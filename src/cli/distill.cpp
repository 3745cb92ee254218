// calque distill: a teacher's translations of the training data, for a student.
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"
#include "calque/runs/distillation.h"

namespace calque::cli {
namespace {

struct DistillCommandOptions {
  std::string teacher;
  std::filesystem::path config;
  std::vector<std::string> overrides;
  std::string by = "bleu";
  DistillOptions distill;
  ModelOptions running;
  bool as_json = false;
};

void report_distillation(const DistillResult& result, const DistillCommandOptions& options) {
  options.as_json ? print_json(result.to_json()) : print(result.to_text());
  if (result.interrupted) {
    log::info("interrupted; everything is saved: the same command with --resume continues");
    throw Exit{exit_interrupted};
  }
  log::info("{}: the translations; train.json beside it says where they come from", result.corpus.string());
  log::info("{}: the student's configuration; `calque train {}` trains it", result.student.string(),
            result.student.string());
}

void run_distill(DistillCommandOptions& options) {
  if (options.distill.resume && options.distill.fresh)
    throw UserError("--resume and --fresh exclude each other");
  options.distill.runs = runs_folder();
  options.distill.by = static_cast<ChooseBy>(
      std::find(std::begin(EnumNames<ChooseBy>::names), std::end(EnumNames<ChooseBy>::names), options.by) -
      std::begin(EnumNames<ChooseBy>::names));
  const RunConfig config = read_run_config(options.config, options.overrides);
  if (std::filesystem::is_regular_file(options.teacher))
    return report_distillation(distill(file_teacher(options.teacher), config, options.distill), options);
  const ModelSource source = find_model(runs_folder(), options.teacher);
  const auto translator = open_model(source, options.running);
  if (!options.running.decode.contains("nbest") && !translator->config().sample)
    translator->config().nbest = translator->config().beam;
  report_distillation(distill(model_teacher(source, *translator), config, options.distill), options);
}

}  // namespace

void add_distill_command(CLI::App& app) {
  static DistillCommandOptions options;
  options.running.precision = "int8";
  CLI::App* command = add_command(
      app, "distill", "Let a teacher translate the training data, for a smaller student to learn from",
      "calque distill demo configs/few-scratch.yaml");
  command
      ->add_option("TEACHER", options.teacher, "A run, a checkpoint, or a file with a translation per line")
      ->required()
      ->type_name(wants_run);
  command->add_option("CONFIG", options.config, "The student's configuration; its data.train is translated")
      ->required()
      ->type_name(wants_config);
  command->add_option("OVERRIDES", options.overrides, "Values that override the file's")
      ->type_name(wants_overrides);
  command
      ->add_option(
          "--choose-by", options.by,
          "Which of the n-best to keep: nearest to the reference by bleu or chrf; first: the teacher's")
      ->check(CLI::IsMember({"bleu", "chrf", "first"}))
      ->capture_default_str();
  command
      ->add_option("--weight", options.distill.weight,
                   "Passes over the translations per epoch of the student, beside the original pairs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--resume", options.distill.resume, "Continue where it was stopped");
  command->add_flag("--fresh", options.distill.fresh, "Delete what is there and start again");
  add_decode_options(*command, options.running);
  add_thread_options(*command, options.running);
  command->add_flag("--json", options.as_json, "Print the counts as JSON");
  command->callback([] { run_distill(options); });
}

}  // namespace calque::cli

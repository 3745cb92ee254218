// calque data: what is wrong with a corpus, and what batches it makes.
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/cli/command.h"
#include "calque/data/batch_summary.h"
#include "calque/data/data_check.h"
#include "calque/kernels/threads.h"
#include "calque/train/run_setup.h"

namespace calque::cli {
namespace {

struct DataOptions {
  std::filesystem::path config;
  std::vector<std::string> overrides;
  bool as_json = false;
  size_t examples = 3;
};

void check(const DataOptions& options) {
  const RunConfig config = read_run_config(options.config, options.overrides);
  check_data_files(config.data);
  if (config.data.train.empty() && config.data.valid.empty() && config.data.test.empty()) {
    throw UserError(fmt::format("{}: data: no corpus is named", options.config.string()), "set data.train");
  }
  std::optional<Tokenizer> tokenizer;
  if (!config.tokenizer.path.empty()) tokenizer = Tokenizer::load(config.tokenizer.path);
  const DataReport report = check_data(config.data, tokenizer ? &*tokenizer : nullptr, options.examples);
  options.as_json ? print_json(report.to_json()) : print(report.to_text());
  if (!tokenizer && !options.as_json)
    log::info("lengths are estimated and unknown tokens not counted: no tokenizer.path is set");
  if (report.fatal()) throw Exit{exit_user_error};
}

void batches(const DataOptions& options) {
  const RunConfig config = read_run_config(options.config, options.overrides);
  check_data_files(config.data);
  if (config.data.train.empty()) throw UserError("data.train is empty: there are no batches to make");
  set_num_threads(config.train.threads);
  DataCache cache(runs_folder() / ".cache", num_threads());
  const BatchSummary summary =
      summarise_batches(stream_options(config), choose_tokenizer(config, cache), cache);
  options.as_json ? print_json(summary.to_json()) : print(summary.to_text());
}

}  // namespace

void add_data_command(CLI::App& app) {
  static DataOptions options;
  CLI::App* data = add_command(app, "data", "Check a corpus before training; see what batches it makes",
                               "calque data check configs/demo.yaml");
  data->require_subcommand(1);
  const auto add_common = [](CLI::App* command) {
    command->add_option("CONFIG", options.config, "Configuration file")->required()->type_name(wants_config);
    command->add_option("OVERRIDES", options.overrides, "Values that override the file's")
        ->type_name(wants_overrides);
    command->add_flag("--json", options.as_json, "Print the result as JSON");
  };
  CLI::App* check_command = add_command(*data, "check", "What is wrong with the corpus, line by line",
                                        "calque data check configs/demo.yaml");
  add_common(check_command);
  check_command->add_option("--examples", options.examples, "Lines shown per kind of problem")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  check_command->callback([] { check(options); });

  CLI::App* batches_command =
      add_command(*data, "batches", "Tokenise the corpus and make one epoch of batches",
                  "calque data batches configs/demo.yaml train.batch_tokens=2048");
  add_common(batches_command);
  batches_command->callback([] { batches(options); });
}

}  // namespace calque::cli

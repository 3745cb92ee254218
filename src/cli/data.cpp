// calque data: what is wrong with a corpus, what batches it makes, and its preparation for training.
#include <optional>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/log.h"
#include "calque/base/units.h"
#include "calque/cli/command.h"
#include "calque/data/batch_summary.h"
#include "calque/data/data_check.h"
#include "calque/kernels/threads.h"
#include "calque/train/rank_check.h"
#include "calque/train/run_setup.h"

namespace calque::cli {
namespace {

struct DataOptions {
  std::filesystem::path config;
  std::vector<std::string> overrides;
  bool as_json = false;
  size_t examples = 3;
  int64_t shards = 0;
  std::optional<int64_t> threads = {};
};

void check(const DataOptions& options) {
  const RunConfig config = read_run_config(options.config, options.overrides);
  check_data_files(config.data);
  if (config.data.train.empty() && config.data.valid.empty() && config.data.test.empty()) {
    throw UserError(fmt::format("{}: data: no corpus is named", options.config.string()), "set data.train");
  }
  set_num_threads(config.train.threads);
  // The one that training will use. A corpus that none can be trained on is still checked.
  std::optional<Tokenizer> tokenizer;
  std::exception_ptr no_tokenizer;
  try {
    DataCache cache(runs_folder() / ".cache", num_threads());
    if (!config.data.train.empty() || !config.tokenizer.path.empty() || !config.finetune.init_from.empty())
      tokenizer = choose_tokenizer(config, cache);
  } catch (const UserError&) {
    no_tokenizer = std::current_exception();
  }
  const DataReport report =
      check_data(config.data, tokenizer ? &*tokenizer : nullptr, options.examples, num_threads());
  options.as_json ? print_json(report.to_json()) : print(report.to_text());
  if (!tokenizer && !options.as_json)
    log::info("lengths are estimated and unknown tokens not counted: there is no tokenizer");
  if (report.fatal()) throw Exit{exit_user_error};
  if (no_tokenizer) std::rethrow_exception(no_tokenizer);
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

// The shards of all processes, by their number.
nlohmann::json gather_shards(ProcessGroup& group, const nlohmann::json& own) {
  nlohmann::json all = nlohmann::json::array();
  for (const std::string& text : group.gather(own.dump())) {
    for (const auto& one : nlohmann::json::parse(text)) all[one["shard"].get<size_t>()] = one;
  }
  return all;
}

// Each process prepares the shards that it would train on, in one pass over the text.
void prepare(const DataOptions& options) {
  ProcessGroup group(world_of_this_process(), {{"command", "data prepare"}});
  RunConfig config;
  group.everywhere([&] {
    config = read_run_config(options.config, options.overrides);
    if (options.shards > 0) config.data.shards = options.shards;
    if (options.threads) config.train.threads = *options.threads;
    check_data_files(config.data);
    if (config.data.train.empty()) throw UserError("data.train is empty: there is nothing to prepare");
    check_shards(config, group.size());
  });
  check_settings_alike(group, config);
  group.set_timeout(config.distributed.timeout_seconds);
  set_num_threads(config.train.threads, group.world().local_size);
  DataCache cache(runs_folder() / ".cache", num_threads());
  std::string corpus;
  group.everywhere([&] { corpus = hex(cache.corpus_hash(config.data.train)); });
  group.check_alike({{"data.train, as a hash", corpus}});
  const Tokenizer tokenizer = shared_tokenizer(group, [&] { return choose_tokenizer(config, cache); });
  nlohmann::json shards = nlohmann::json::array();
  group.everywhere([&] {
    TokenStoreOptions store_options;
    store_options.max_tokens = config.data.max_tokens;
    store_options.shards = config.data.shards;
    const auto own = shards_of_rank(config.data.shards, group.rank(), group.size());
    const auto stores = cache.token_shards(config.data.train, tokenizer, store_options, own);
    for (size_t i = 0; i < own.size(); ++i)
      shards.push_back({{"shard", own[i]}, {"pairs", stores[i].pairs()}, {"tokens", stores[i].tokens()}});
    validation_batches(config, tokenizer, cache);
  });
  const nlohmann::json all = gather_shards(group, shards);
  if (!group.is_first()) return;
  if (options.as_json) return print_json(all);
  for (const auto& one : all) {
    print(fmt::format("shard {} of {}: {} pairs, {} tokens\n", one["shard"].get<int64_t>() + 1,
                      config.data.shards, format_count(one["pairs"].get<int64_t>()),
                      format_count(one["tokens"].get<int64_t>())));
  }
  log::info("{} has everything; train with data.shards={}", cache.folder().string(), config.data.shards);
}

}  // namespace

void add_data_command(CLI::App& app) {
  static DataOptions options;
  CLI::App* data =
      add_command(app, "data", "Check a corpus before training, see what batches it makes, prepare it",
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

  CLI::App* prepare_command =
      add_command(*data, "prepare", "Train the tokenizer and tokenise the corpus ahead of training",
                  "calque launch -n 4 data prepare configs/base.yaml --shards 16");
  add_common(prepare_command);
  prepare_command->add_option("--shards", options.shards, "Sets data.shards")->check(CLI::Range(1, 65536));
  prepare_command->add_option("--threads", options.threads, "Sets train.threads")->check(CLI::Range(0, 1024));
  prepare_command->callback([] { prepare(options); });
}

}  // namespace calque::cli

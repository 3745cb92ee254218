// calque data: what is wrong with a corpus, and what batches it makes.
#include <chrono>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/base/text.h"
#include "calque/base/units.h"
#include "calque/cli/command.h"
#include "calque/data/batch_sampler.h"
#include "calque/data/data_check.h"
#include "calque/data/prefetcher.h"
#include "calque/data/prepared_data.h"
#include "calque/train/run_config.h"

namespace calque::cli {
namespace {

using nlohmann::json;

struct DataOptions {
  std::filesystem::path config;
  std::vector<std::string> overrides;
  bool as_json = false;
  size_t examples = 3;
  int64_t batch_tokens = 4096;
};

json to_json(const DataReport& report) {
  json findings = json::array();
  for (const DataFinding& finding : report.findings) {
    json examples = json::array();
    for (const DataExample& one : finding.examples)
      examples.push_back({{"file", one.file}, {"line", one.line}, {"text", one.text}});
    findings.push_back({{"kind", finding.kind},
                        {"meaning", finding.meaning},
                        {"fatal", finding.fatal},
                        {"count", finding.count},
                        {"examples", examples}});
  }
  json splits = json::object();
  for (const DataSplit& split : report.splits) {
    splits[split.name] = {
        {"pairs", split.pairs}, {"source_words", split.source_words}, {"target_words", split.target_words}};
  }
  json result = {{"findings", findings}, {"pairs", report.pairs}, {"splits", splits}};
  if (report.unknown_rate) result["unknown_rate"] = *report.unknown_rate;
  return result;
}

std::string to_text(const DataReport& report) {
  std::string out;
  for (const DataSplit& split : report.splits) {
    out += fmt::format("{:<6} {:>12} pairs  {:>12} source words  {:>12} target words\n", split.name,
                       format_count(split.pairs), format_count(split.source_words),
                       format_count(split.target_words));
  }
  if (report.unknown_rate)
    out += fmt::format("pieces without a better form than bytes: {:.3f} %\n", *report.unknown_rate * 100);
  for (const DataFinding& finding : report.findings) {
    out += fmt::format("\n{:<8} {:<22} {:>9}  {}\n", finding.fatal ? "FATAL" : "warning", finding.kind,
                       format_count(finding.count), finding.meaning);
    for (const DataExample& one : finding.examples) {
      out += one.line > 0 ? fmt::format("  {}:{}: {}\n", one.file, one.line, one.text)
                          : fmt::format("  {}: {}\n", one.file, one.text);
    }
    const auto more = finding.count - static_cast<int64_t>(finding.examples.size());
    if (more > 0 && finding.kind != "unknown-tokens")
      out += fmt::format("  … and {} more\n", format_count(more));
  }
  if (report.findings.empty()) out += "nothing to remark\n";
  return out;
}

void check(const DataOptions& options) {
  const RunConfig config = read_run_config(options.config, options.overrides);
  if (config.data.train.empty() && config.data.valid.empty() && config.data.test.empty()) {
    throw UserError(fmt::format("{}: data: no corpus is named", options.config.string()), "set data.train");
  }
  std::optional<Tokenizer> tokenizer;
  if (!config.tokenizer.path.empty()) tokenizer = Tokenizer::load(config.tokenizer.path);
  const DataReport report = check_data(config.data, tokenizer ? &*tokenizer : nullptr, options.examples);
  if (options.as_json) {
    print_json(to_json(report));
  } else {
    print(to_text(report));
    if (!tokenizer)
      log::info("lengths are estimated and unknown tokens not counted: there is no tokenizer.path yet");
  }
  if (report.fatal()) throw Exit{exit_user_error};
}

void batches(const DataOptions& options) {
  const RunConfig config = read_run_config(options.config, options.overrides);
  const auto cache = runs_folder() / ".cache";
  const Tokenizer tokenizer = prepare_tokenizer(config.tokenizer, config.data.train, cache);
  TokenStoreOptions store_options;
  store_options.max_tokens = config.data.max_tokens;
  const TokenStore store = prepare_tokens(config.data.train, tokenizer, store_options, cache);
  BatchSamplerOptions sampler_options;
  sampler_options.batch_tokens = options.batch_tokens;
  sampler_options.seed = static_cast<uint64_t>(config.seed);
  for (const CorpusPart& part : config.data.train) sampler_options.weights.push_back(part.weight);
  BatchSampler sampler(store,
                       store.is_text() ? text_format(tokenizer) : pair_format(tokenizer, config.model.prompt),
                       sampler_options);

  const int64_t steps = sampler.steps(0);
  const auto start = std::chrono::steady_clock::now();
  int64_t rows = 0, labels = 0, pairs = 0, step = 0;
  {
    Progress progress("making batches", steps, "batches");
    Prefetcher prefetcher([&]() -> std::optional<Batch> {
      if (step == steps) return std::nullopt;
      return make_batch(store, sampler.format(), sampler.pairs(0, step++));
    });
    while (const auto batch = prefetcher.next()) {
      rows += batch->rows();
      labels += static_cast<int64_t>(batch->labels.size());
      pairs += batch->pairs();
      progress.advance(1);
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double fill = static_cast<double>(rows) / static_cast<double>(steps * options.batch_tokens);
  if (options.as_json) {
    print_json({{"pairs", pairs},
                {"batches", steps},
                {"rows", rows},
                {"labels", labels},
                {"fill", fill},
                {"rows_per_second", static_cast<double>(rows) / seconds},
                {"vocabulary", tokenizer.size()}});
    return;
  }
  print(
      fmt::format("{} pairs make {} batches of at most {} tokens, {} full, no padding\n"
                  "{} tokens, {} of them carry loss\n"
                  "one epoch of batches in {}: {} tokens a second\n",
                  format_count(pairs), format_count(steps), format_count(options.batch_tokens),
                  format_share(fill), format_count(rows), format_count(labels), format_seconds(seconds),
                  format_count(static_cast<int64_t>(static_cast<double>(rows) / seconds))));
}

}  // namespace

void add_data_command(CLI::App& app) {
  static DataOptions options;
  CLI::App* data = add_command(app, "data", "Check a corpus before training; see what batches it makes",
                               "calque data check configs/demo.yaml");
  data->require_subcommand(1);
  const auto add_common = [](CLI::App* command) {
    command->add_option("CONFIG", options.config, "Configuration file")->required()->type_name(wants_config);
    command->add_option("OVERRIDES", options.overrides, "Values that win over the file's")
        ->type_name(wants_overrides);
    command->add_flag("--json", options.as_json, "The result as JSON");
  };
  CLI::App* check_command = add_command(*data, "check", "What is wrong with the corpus, by line",
                                        "calque data check configs/demo.yaml");
  add_common(check_command);
  check_command->add_option("--examples", options.examples, "Lines shown of each kind")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  check_command->callback([] { check(options); });

  CLI::App* batches_command =
      add_command(*data, "batches", "Tokenise the corpus and make one epoch of batches",
                  "calque data batches configs/demo.yaml --batch-tokens 2048");
  add_common(batches_command);
  batches_command->add_option("--batch-tokens", options.batch_tokens, "Tokens in a batch at most")
      ->capture_default_str()
      ->check(CLI::Range(8, 1'000'000'000));
  batches_command->callback([] { batches(options); });
}

}  // namespace calque::cli

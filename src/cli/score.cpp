// calque score: the probability that a model gives to existing translations.
#include "calque/decode/scorer.h"

#include "calque/base/progress.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"

namespace calque::cli {
namespace {

struct ScoreOptions {
  std::string model;
  std::filesystem::path file;
  ModelOptions running;
  bool as_json = false;
};

void run_score(const ScoreOptions& options) {
  const auto translator = open_model(find_model(runs_folder(), options.model), options.running);
  CorpusPart part;
  part.pairs = options.file;
  PairReader reader(part);
  Progress progress("scoring", static_cast<int64_t>(std::filesystem::file_size(options.file)), "bytes");
  int64_t bytes = 0;
  score_lines(*translator, reader, [&](const ScoredPair& pair) {
    print(options.as_json ? json_line(pair.to_json()) : pair.to_text());
    progress.advance(reader.bytes_read() - bytes);
    bytes = reader.bytes_read();
  });
}

}  // namespace

void add_score_command(CLI::App& app) {
  static ScoreOptions options;
  CLI::App* command =
      add_command(app, "score", "Print the log-probability that a model gives to existing translations",
                  "calque score demo data/everyday/test.tsv | head -3   # log p, and log p per token");
  command->add_option("MODEL", options.model, "A run or a checkpoint")->required()->type_name(wants_run);
  command->add_option("FILE", options.file, "TSV of source<TAB>target")->required()->type_name("FILE");
  add_thread_options(*command, options.running);
  command->add_flag("--json", options.as_json,
                    "Print one JSON object per line, with the scores of all tokens");
  command->callback([] { run_score(options); });
}

}  // namespace calque::cli

// calque score: how probable a model finds given translations.
#include "calque/decode/scorer.h"

#include <iostream>
#include <numeric>

#include "calque/base/error.h"
#include "calque/base/progress.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"
#include "calque/data/corpus.h"

namespace calque::cli {
namespace {

struct ScoreOptions {
  std::string model;
  std::filesystem::path file;
  ModelOptions running;
  bool as_json = false;
};

constexpr size_t pairs_at_once = 512;

void print_scores(const Translator& translator, const std::vector<TokenPair>& pairs, bool as_json) {
  const auto all = score_pairs(translator.model(), translator.format(), pairs);
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (all[i].empty())
      throw UserError("a pair is longer than the model has positions", "split it into sentences");
    const double sum = std::accumulate(all[i].begin(), all[i].end(), 0.0);
    if (!as_json) {
      print(fmt::format("{:.4f}\t{:.4f}\n", sum, sum / static_cast<double>(all[i].size())));
      continue;
    }
    nlohmann::json pieces = nlohmann::json::array();
    for (const int32_t id : pairs[i].target) pieces.push_back(translator.tokenizer().piece(id));
    pieces.push_back("</s>");
    const nlohmann::json line = {
        {"log_probability", sum}, {"tokens", pieces}, {"token_log_probabilities", all[i]}};
    print(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
}

void run_score(ScoreOptions& options) {
  const auto translator = open_model(find_model(runs_folder(), options.model), options.running);
  CorpusPart part;
  part.pairs = options.file;
  PairReader reader(part);
  Progress progress("scoring", static_cast<int64_t>(std::filesystem::file_size(options.file)), "bytes");
  std::vector<TokenPair> pairs;
  int64_t bytes = 0;
  const auto flush = [&] {
    print_scores(*translator, pairs, options.as_json);
    pairs.clear();
    progress.advance(reader.bytes_read() - bytes);
    bytes = reader.bytes_read();
  };
  for (SentencePair pair; reader.next(pair);) {
    pairs.push_back(
        {translator->tokenizer().encode(pair.source), translator->tokenizer().encode(pair.target)});
    if (pairs.size() == pairs_at_once) flush();
  }
  flush();
}

}  // namespace

void add_score_command(CLI::App& app) {
  static ScoreOptions options;
  CLI::App* command =
      add_command(app, "score", "How probable a model finds given translations",
                  "calque score demo data/everyday/test.tsv | head -3   # log p, and log p a token");
  command->add_option("MODEL", options.model, "A run or a checkpoint")->required()->type_name(wants_run);
  command->add_option("FILE", options.file, "Pairs, source<TAB>target")->required()->type_name("FILE");
  add_thread_options(*command, options.running);
  command->add_flag("--json", options.as_json, "A JSON object a line, with each token's own");
  command->callback([] { run_score(options); });
}

}  // namespace calque::cli

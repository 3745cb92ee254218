// calque evaluate: a test set translated and scored.
#include "calque/runs/evaluation.h"

#include "calque/base/log.h"
#include "calque/base/units.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"
#include "calque/cli/test_set_options.h"
#include "calque/kernels/threads.h"
#include "calque/runs/shared_translation.h"

namespace calque::cli {
namespace {

struct EvaluateOptions {
  std::string model;
  TestSetOptions test;
  ModelOptions running;
  ScoringOptions scoring;
  bool again = false;
  bool as_json = false;
};

void print_evaluation(const Evaluation& evaluation) {
  const EvaluationFacts& facts = evaluation.facts;
  const double loss = facts.loss.value_or(0);
  print(evaluation.scores.to_text());
  print(
      fmt::format("loss {:.4f} nats per token, perplexity {:.2f}\nlength ratio {:.3f}; untranslated {}, "
                  "empty {}, cut off {}\n"
                  "{:.0f} sentences per second, {} tokens per second, beam {}\n",
                  loss, std::exp(loss), facts.length_ratio, format_share(facts.untranslated),
                  format_share(facts.empty), format_share(facts.cut_off), facts.sentences_per_second,
                  format_count(std::llround(facts.tokens_per_second)), facts.beam));
}

// Only rank 0 reads the test set.
void run_evaluate(const EvaluateOptions& options) {
  ProcessGroup group(world_of_this_process(), {{"command", "evaluate"}});
  ModelSource source;
  TestSet test;
  group.everywhere([&] {
    source = find_model(runs_folder(), options.model);
    if (group.is_first()) test = open_test_set(options.test, [&] { return default_test_set(source); });
  });
  const auto translator = open_on_all(group, source, [&] {
    auto opened = open_model(source, options.running);
    set_num_threads(options.running.threads, group.world().local_size);
    return opened;
  });
  const auto evaluation = evaluate_model(source, *translator, test, options.scoring, options.again, group);
  if (!evaluation) return;
  options.as_json ? print_json(evaluation->to_json()) : print_evaluation(*evaluation);
  if (source.run) {
    log::info("{}: hypotheses, references and scores per sentence",
              (*source.run / "evaluations" / test.name).string());
  }
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  static EvaluateOptions options;
  CLI::App* command = add_command(app, "evaluate", "Translate a test set and score it",
                                  "calque evaluate demo --data data/everyday/test.tsv");
  command->add_option("MODEL", options.model, "A run or a checkpoint")->required()->type_name(wants_run);
  add_test_set_options(*command, options.test);
  add_decode_options(*command, options.running);
  add_thread_options(*command, options.running);
  command->add_option("--chrf-word-order", options.scoring.chrf.word_order, "Word n-grams in chrF; 2: chrF++")
      ->check(CLI::Range(0, 6))
      ->capture_default_str();
  command->add_flag("--again", options.again, "Translate again, even if the same evaluation is stored");
  command->add_flag("--json", options.as_json, "Print the scores as JSON");
  command->callback([] { run_evaluate(options); });
}

}  // namespace calque::cli

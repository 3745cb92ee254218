// calque evaluate: a test set translated and scored.
#include "calque/train/evaluation.h"

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/units.h"
#include "calque/cli/command.h"
#include "calque/cli/model_options.h"
#include "calque/cli/test_set.h"

namespace calque::cli {
namespace {

struct EvaluateOptions {
  std::string model;
  TestSetOptions test;
  ModelOptions running;
  ScoringOptions scoring;
  bool anew = false;
  bool as_json = false;
};

void run_evaluate(EvaluateOptions& options) {
  const ModelSource source = find_model(runs_folder(), options.model);
  const TestSet test = open_test_set(options.test, source.config ? &*source.config : nullptr);
  const auto translator = open_model(source, options.running);
  const Evaluation evaluation = evaluate_model(source, *translator, test, options.scoring, options.anew);
  if (options.as_json) {
    print_json(evaluation.to_json());
  } else {
    const auto fact = [&](const char* name) { return evaluation.facts.value(name, 0.0); };
    print(evaluation.scores.to_text());
    print(fmt::format(
        "loss {:.4f} nats a token, perplexity {:.2f}\nlength ratio {:.3f}; untranslated {}, empty {}, cut "
        "off {}\n{:.0f} sentences a second, {} tokens a second, beam {}\n",
        fact("loss"), fact("perplexity"), fact("length_ratio"), format_share(fact("untranslated")),
        format_share(fact("empty")), format_share(fact("cut_off")), fact("sentences_per_second"),
        format_count(std::llround(fact("tokens_per_second"))), translator->config().beam));
  }
  if (source.run) {
    log::info("{}: hypotheses, references and scores by sentence",
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
  add_search_options(*command, options.running);
  add_shots_option(*command, options.running);
  add_thread_options(*command, options.running);
  command->add_option("--chrf-word-order", options.scoring.chrf.word_order, "Words in chrF; 2: chrF++")
      ->check(CLI::Range(0, 6))
      ->capture_default_str();
  command->add_flag("--anew", options.anew, "Translate again, even where the same was done before");
  command->add_flag("--json", options.as_json, "The scores as JSON");
  command->callback([] { run_evaluate(options); });
}

}  // namespace calque::cli

#include "calque/cli/model_options.h"

#include "calque/base/error.h"
#include "calque/kernels/threads.h"

namespace calque::cli {

void add_thread_options(CLI::App& command, ModelOptions& options) {
  command.add_option("--threads", options.threads, "Processor threads; 0: all cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command
      .add_option("--precision", options.precision,
                  "Of the weights that are translated with: float32, bfloat16, int8 (the fastest)")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}))
      ->capture_default_str();
  command.add_option("--batch", options.batch, "Sentences at one time")->check(CLI::Range(1, 100'000));
}

void add_search_options(CLI::App& command, ModelOptions& options) {
  command.add_option("--beam", options.beam, "Translations kept while searching; 1: greedy")
      ->check(CLI::Range(1, 1000));
  command.add_option("--length-penalty", options.length_penalty, "0: none; more favours longer translations")
      ->check(CLI::Range(0.0, 10.0));
  command
      .add_option("--no-repeat-ngram", options.no_repeat_ngram, "No n-gram of so many tokens twice; 0: any")
      ->check(CLI::Range(0, 1000));
  command.add_flag("--sample", options.sample, "Draw tokens by their probability");
  command.add_option("--temperature", options.temperature, "When sampling: below 1 sharper, above 1 flatter")
      ->check(CLI::PositiveNumber);
  command.add_option("--top-k", options.top_k, "When sampling: only among so many; 0: all")
      ->check(CLI::Range(0, 1'000'000));
  command.add_option("--top-p", options.top_p, "When sampling: only among those that sum to this")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--seed", options.seed, "When sampling: what is drawn from")
      ->check(CLI::NonNegativeNumber);
}

void add_shots_option(CLI::App& command, ModelOptions& options) {
  command
      .add_option("--shots", options.shots,
                  "Examples, source<TAB>target, before each sentence: for a model never trained to translate")
      ->type_name("FILE");
}

void apply_search_options(const ModelOptions& options, DecodeConfig& config) {
  const auto take = [](const auto& given, auto& value) {
    if (given) value = *given;
  };
  take(options.beam, config.beam);
  take(options.nbest, config.nbest);
  take(options.length_penalty, config.length_penalty);
  take(options.batch, config.batch);
  take(options.temperature, config.temperature);
  take(options.top_k, config.top_k);
  take(options.top_p, config.top_p);
  take(options.seed, config.seed);
  take(options.no_repeat_ngram, config.no_repeat_ngram);
  if (options.sample) config.sample = true;
  // Asking for more translations than the beam holds means a wider beam, unless one was named.
  if (!config.sample && config.nbest > config.beam && !options.beam) config.beam = config.nbest;
  check_decode(config);
}

std::unique_ptr<Translator> open_model(const ModelSource& source, const ModelOptions& options) {
  use_threads(options.threads);
  const auto& names = EnumNames<Packing>::names;
  const auto found = std::find(std::begin(names), std::end(names), options.precision);
  auto translator = open_translator(source, static_cast<Packing>(std::distance(std::begin(names), found)));
  apply_search_options(options, translator->config());
  if (!options.shots.empty()) translator->show_examples(options.shots);
  return translator;
}

}  // namespace calque::cli

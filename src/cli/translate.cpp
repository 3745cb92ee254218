// calque translate: a prompt on a terminal, a filter in a pipe, files with progress.
#include <unistd.h>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/base/text.h"
#include "calque/cli/command.h"
#include "calque/cli/line_input.h"
#include "calque/cli/model_options.h"
#include "calque/cli/translate_prompt.h"

namespace calque::cli {
namespace {

struct TranslateOptions {
  std::string model;
  std::vector<std::filesystem::path> files;
  ModelOptions running;
  std::string prefix;
  bool scores = false;
  bool as_json = false;
};

nlohmann::json as_json(const Translator& translator, const Translation& translation) {
  nlohmann::json best = nlohmann::json::array();
  for (const TranslatedText& one : translation.best) {
    nlohmann::json pieces = nlohmann::json::array(), log_probabilities = nlohmann::json::array();
    for (const Hypothesis& part : one.parts) {
      for (const int32_t id : part.tokens) pieces.push_back(translator.tokenizer().piece(id));
      for (const float value : part.token_log_probabilities) log_probabilities.push_back(value);
    }
    best.push_back({{"text", one.text},
                    {"score", one.score},
                    {"log_probability", one.log_probability},
                    {"complete", one.complete},
                    {"tokens", pieces},
                    {"token_log_probabilities", log_probabilities}});
  }
  std::string source;
  for (const std::string& part : translation.sources) source += (source.empty() ? "" : " ") + part;
  return {{"source", source}, {"translation", translation.text()}, {"nbest", best}};
}

// The lines of one translation: one, unless several are asked for.
std::string as_text(const Translation& translation, int64_t line, bool nbest, bool scores) {
  std::string text;
  for (const TranslatedText& one : translation.best) {
    if (nbest) text += fmt::format("{}\t", line + 1);
    if (scores) text += fmt::format("{:.4f}\t", one.score);
    text += one.text + "\n";
  }
  return text;
}

void run_translate(TranslateOptions& options) {
  if (options.files.empty() && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1)
    return run_prompt(options.model, options.running, options.prefix);
  LineInput input(options.files);
  const auto translator = open_model(find_model(runs_folder(), options.model), options.running);
  Progress progress("translating", input.total_bytes(), "bytes");
  int64_t bytes = 0;
  bool told = false;
  const NextLine next = [&](bool wait) {
    auto line = input.next(wait);
    if (line && !told && find_invalid_utf8(*line)) {
      log::warn("{}: not valid UTF-8; what is not is replaced, here and in later lines", input.place());
      told = true;
    }
    return line;
  };
  const bool nbest = translator->config().nbest > 1;
  const LineDone done = [&](int64_t line, const Translation& translation) {
    if (!translation.best.front().complete)
      log::warn("line {}: the translation was cut off at its greatest length", line + 1);
    print(options.as_json ? as_json(*translator, translation)
                                    .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                                "\n"
                          : as_text(translation, line, nbest, options.scores));
    if (std::fflush(stdout) != 0) throw SystemError("stdout", errno);
    if (input.total_bytes() > 0) {
      progress.advance(input.bytes_read() - bytes);
      bytes = input.bytes_read();
    }
  };
  translator->translate_lines(next, done, options.prefix);
}

}  // namespace

void add_translate_command(CLI::App& app) {
  static TranslateOptions options;
  CLI::App* command = add_command(app, "translate", "Translate: a prompt on a terminal, a filter in a pipe",
                                  "echo 'Le chat dort.' | calque translate demo");
  command->add_option("MODEL", options.model, "A run or a checkpoint")->required()->type_name(wants_run);
  command->add_option("FILES", options.files, "Files to translate, a line each; none: what comes in on stdin")
      ->type_name("FILE");
  command->add_option("--nbest", options.running.nbest, "Show so many translations, each line numbered")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--scores", options.scores, "Put each translation's score before it");
  command->add_option("--prefix", options.prefix, "English that every translation begins with")
      ->type_name("TEXT");
  add_search_options(*command, options.running);
  add_shots_option(*command, options.running);
  add_thread_options(*command, options.running);
  command->add_flag("--json", options.as_json, "A JSON object a line: source, translation, n-best, tokens");
  command->callback([] { run_translate(options); });
}

}  // namespace calque::cli

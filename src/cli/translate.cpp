// calque translate: a prompt on a terminal, a filter in a pipe, files with progress.
#include <unistd.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/interrupt.h"
#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/base/text.h"
#include "calque/cli/command.h"
#include "calque/cli/line_input.h"
#include "calque/cli/model_options.h"
#include "calque/cli/translate_prompt.h"
#include "calque/kernels/threads.h"
#include "calque/runs/shared_translation.h"

namespace calque::cli {
namespace {

struct TranslateOptions {
  std::string model;
  std::vector<std::filesystem::path> files;
  ModelOptions running;
  std::string prefix;
  bool scores = false;
  bool as_json = false;
  std::filesystem::path output;
};

nlohmann::json as_json(const Translator& translator, const Translation& translation) {
  nlohmann::json best = nlohmann::json::array();
  for (const TranslatedText& one : translation.best) {
    nlohmann::json pieces = nlohmann::json::array(), log_probabilities = nlohmann::json::array();
    for (const Hypothesis& part : one.parts) {
      // A forced prefix has no log-probabilities; the end token has one.
      const size_t searched =
          part.token_log_probabilities.size() - (part.ended && !part.token_log_probabilities.empty());
      for (size_t i = part.tokens.size() - searched; i < part.tokens.size(); ++i)
        pieces.push_back(translator.tokenizer().piece(part.tokens[i]));
      if (part.token_log_probabilities.size() > searched) pieces.push_back("</s>");
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
  return {{"source", source},
          {"translation", translation.text()},
          {"looped", translation.looped},
          {"copied", translation.copied},
          {"cut", translation.cut},
          {"nbest", best}};
}

// One line per translation of the n-best list.
std::string as_text(const Translation& translation, int64_t line, bool nbest, bool scores) {
  std::string text;
  for (const TranslatedText& one : translation.best) {
    if (nbest) text += fmt::format("{}\t", line + 1);
    if (scores) text += fmt::format("{:.4f}\t", one.score);
    text += one.text + "\n";
  }
  return text;
}

void warn_of(int64_t line, const TranslatedLine& translated) {
  if (!translated.complete) log::warn("line {}: the translation was cut off at the length limit", line + 1);
  if (translated.looped)
    log::warn("line {}: the translation repeated itself and was searched for again", line + 1);
  if (translated.copied) log::warn("line {}: a word is too long for the model and was copied", line + 1);
  if (translated.cut)
    log::warn("line {}: a sentence is too long for the model and was cut between words", line + 1);
}

// Only rank 0 reads lines and writes translations.
struct Files {
  std::optional<LineInput> input;
  std::unique_ptr<AtomicFile> output;  // none: stdout
  std::optional<Interrupt> interrupt;  // with an output that would be left half-written
};

void translate_all(SharedTranslation& translation, Files& files) {
  LineInput& input = *files.input;
  Progress progress("translating", input.total_bytes(), "bytes");
  int64_t bytes = 0;
  bool warned = false;
  const NextLine next = [&](bool wait) {
    auto line = input.next(wait);
    if (line && !warned && find_invalid_utf8(*line)) {
      log::warn("{}: not valid UTF-8; invalid bytes are replaced, here and in later lines", input.place());
      warned = true;
    }
    return line;
  };
  translation.run(next, [&](int64_t line, const TranslatedLine& translated) {
    warn_of(line, translated);
    if (files.interrupt && files.interrupt->requested()) throw Exit{exit_interrupted};
    if (files.output) {
      files.output->write(translated.text);
    } else {
      print(translated.text);
      flush_stdout();
    }
    if (input.total_bytes() > 0) {
      progress.advance(input.bytes_read() - bytes);
      bytes = input.bytes_read();
    }
  });
  if (files.output) files.output->commit();
}

void run_translate(TranslateOptions& options) {
  if (options.output == "-") options.output.clear();
  const auto flag = [](bool given) { return given ? "given" : "not given"; };
  ProcessGroup group(world_of_this_process(), {{"command", "translate"},
                                               {"--scores", flag(options.scores)},
                                               {"--json", flag(options.as_json)},
                                               {"--prefix", options.prefix}});
  if (group.is_alone() && options.files.empty() && options.output.empty() && isatty(STDIN_FILENO) == 1 &&
      isatty(STDOUT_FILENO) == 1)
    return run_prompt(options.model, options.running, options.prefix);
  Files files;
  ModelSource source;
  group.everywhere([&] {
    if (group.is_first()) files.input.emplace(options.files);
    source = find_model(runs_folder(), options.model);
  });
  const auto translator = open_on_all(group, source, [&] {
    auto opened = open_model(source, options.running);
    set_num_threads(options.running.threads, group.world().local_size);
    return opened;
  });
  group.everywhere([&] {
    if (!group.is_first() || options.output.empty()) return;
    files.output = std::make_unique<AtomicFile>(options.output);
    if (files.input->total_bytes() > 0) files.interrupt.emplace();  // what waits for a pipe ends at once
  });
  const bool nbest = translator->config().nbest > 1;
  SharedTranslation translation(
      *translator, group,
      [&](int64_t line, const Translation& one) {
        return options.as_json ? json_line(as_json(*translator, one))
                               : as_text(one, line, nbest, options.scores);
      },
      options.prefix);
  group.is_first() ? translate_all(translation, files) : translation.work();
}

}  // namespace

void add_translate_command(CLI::App& app) {
  static TranslateOptions options;
  CLI::App* command = add_command(app, "translate", "Translate: a prompt on a terminal, a filter in a pipe",
                                  "echo 'Le chat dort.' | calque translate demo");
  command->add_option("MODEL", options.model, "A run or a checkpoint")->required()->type_name(wants_run);
  command->add_option("FILES", options.files, "Files to translate, line by line; `-` or none: stdin")
      ->type_name("FILE");
  command
      ->add_option("-o,--output", options.output,
                   "File to write, complete or not at all; `-` or none: stdout")
      ->type_name("FILE");
  command->add_flag("--scores", options.scores, "Print each translation's score before it");
  command->add_option("--prefix", options.prefix, "English text that every translation must begin with")
      ->type_name("TEXT");
  add_decode_options(*command, options.running);
  add_thread_options(*command, options.running);
  command->add_flag("--json", options.as_json,
                    "Print one JSON object per line: source, translation, n-best, tokens");
  command->callback([] { run_translate(options); });
}

}  // namespace calque::cli

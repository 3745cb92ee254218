#include "calque/cli/command.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/text.h"
#include "calque/distributed/process_group.h"
#include "calque/runs/model_source.h"
#include "calque/runs/run_config.h"

namespace calque::cli {
namespace {

// The table of subcommands, in the order in which --help shows them.
constexpr void (*add_functions[])(CLI::App&) = {
    add_train_command,     add_resume_command,     add_tune_command,       add_distill_command,
    add_translate_command, add_evaluate_command,   add_compare_command,    add_serve_command,
    add_import_command,    add_export_command,     add_inspect_command,    add_explore_command,
    add_score_command,     add_score_text_command, add_bench_command,      add_selftest_command,
    add_launch_command,    add_data_command,       add_runs_command,       add_cache_command,
    add_tokenizer_command, add_config_command,     add_completion_command, add_man_command,
};

struct GlobalOptions {
  bool quiet = false;
  bool verbose = false;
  std::string runs = "runs";
};
GlobalOptions& globals() {
  static GlobalOptions options;
  return options;
}

// Of several processes, the first speaks for all; the others report what is wrong with them.
void start_log() {
  const World world = world_of_this_process();
  log::start(globals().quiet || !world.is_first() ? log::Verbosity::quiet
             : globals().verbose                  ? log::Verbosity::verbose
                                                  : log::Verbosity::normal);
  if (!world.is_first()) log::set_prefix(fmt::format("[rank {}] ", world.rank));
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) names.push_back(sub->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The subcommand that the words went down to, and its full name.
const CLI::App* deepest(const CLI::App& app, std::string& name) {
  const CLI::App* at = &app;
  name = app.get_name();
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    name += " " + at->get_name();
  }
  return at;
}

const CLI::Option* option_of(const CLI::App& command, const std::string& word) {
  for (const CLI::App* at = &command; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      if (option->check_name(word.substr(0, word.find('=')))) return option;
    }
  }
  return nullptr;
}

// Where a subcommand should stand: the first word after the command's own name that is no option's value. Or
// else an option that does not exist.
std::optional<std::string> unknown_subcommand(const CLI::App& command,
                                              const std::vector<std::string>& words) {
  std::vector<std::string> path;  // of the command, from the first word on
  for (const CLI::App* at = &command; at->get_parent() != nullptr; at = at->get_parent())
    path.insert(path.begin(), at->get_name());
  std::optional<std::string> unknown_option;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with("-")) {
      const CLI::Option* option = option_of(command, word);
      if (option == nullptr && !unknown_option && word.starts_with("--") && word.size() > 2)
        unknown_option = word;
      const bool has_value = option != nullptr && option->get_items_expected_max() > 0;
      i += has_value && word.find('=') == std::string::npos;
    } else if (!path.empty() && word == path.front()) {
      path.erase(path.begin());
    } else if (!word.empty()) {
      return word;
    }
  }
  return unknown_option;
}

// The first word that nothing took: an unknown subcommand, option or argument.
std::optional<std::string> unknown_word(const CLI::App& command, const CLI::ParseError& error,
                                        const std::vector<std::string>& words) {
  const std::string message = error.what();  // of an ExtrasError: "…: WORD WORD"
  const std::string extras = message.substr(std::min(message.find(": "), message.size() - 1) + 1) + " ";
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !subcommand_names(command).empty())
    return unknown_subcommand(command, words);
  for (const std::string& word : words) {
    if (word.empty()) continue;
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr &&
        extras.find(" " + word + " ") != std::string::npos)
      return word;
  }
  return std::nullopt;
}

// What an unknown option means as an override: `--steps 30` is train.steps=30. Nothing if the command takes
// no overrides or no key has this name.
std::optional<std::string> as_override(const CLI::App& command, const std::string& option,
                                       const std::vector<std::string>& words) {
  const auto options = command.get_options();
  if (std::none_of(options.begin(), options.end(),
                   [](const CLI::Option* one) { return one->get_type_name() == wants_overrides; }))
    return std::nullopt;
  const size_t equals = option.find('=');
  std::string name = option.substr(0, equals);
  name.erase(0, name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  std::string value = equals != std::string::npos ? option.substr(equals + 1) : "VALUE";
  const auto at = std::find(words.begin(), words.end(), option);
  if (equals == std::string::npos && words.end() - at > 1 && !at[1].starts_with("-")) value = at[1];
  RunConfig defaults;
  for (const std::string& key : config_keys(fields(defaults))) {
    if (key == name || key.ends_with("." + name)) return key + "=" + value;
  }
  return std::nullopt;
}

int report_usage_error(const CLI::App& app, const CLI::ParseError& error,
                       const std::vector<std::string>& words) {
  std::string name;
  const CLI::App* command = deepest(app, name);
  std::string message = error.what();
  if (const auto word = unknown_word(*command, error, words)) {
    const bool option = word->starts_with("-");
    const auto known = option ? option_names(*command) : subcommand_names(*command);
    const auto override = option ? as_override(*command, *word, words) : std::nullopt;
    message = fmt::format("{}: no such {}{}", *word,
                          option          ? "option"
                          : known.empty() ? "argument"
                                          : "subcommand",
                          override ? fmt::format("; did you mean {}?", *override)
                                   : did_you_mean(word->substr(0, word->find('=')), known));
  }
  log::error("{}", message);
  log::info("  help: `{} --help` shows what it takes", name);
  return exit_user_error;
}

int finish(int code) {
  try {
    flush_stdout();
  } catch (const SystemError& error) {
    log::error("{}", error.what());
    return exit_failed;
  }
  return code;
}

}  // namespace

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& summary,
                      const std::string& example) {
  CLI::App* command = parent.add_subcommand(name, summary);
  command->fallthrough();
  if (!example.empty()) command->footer("Example:\n  " + example);
  return command;
}

void flush_stdout() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  if (errno == EPIPE) {  // `| head` has read enough: end as other programs do
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  throw SystemError("stdout", errno);
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// Invalid UTF-8 in a value (a file's name, say) is replaced, never a failure.
void print_json(const nlohmann::json& value) {
  print(value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::string json_line(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::filesystem::path runs_folder() { return globals().runs; }

std::filesystem::path checkpoint_of(const std::filesystem::path& run_or_path) {
  const bool is_run = std::filesystem::exists(runs_folder() / run_or_path / "config.yaml") ||
                      std::filesystem::exists(run_or_path / "config.yaml");
  return is_run ? find_model(runs_folder(), run_or_path.string()).checkpoint : run_or_path;
}

int run(int argc, char** argv) {
  CLI::App app("Trains decoder-only Transformers that translate French into English.", "calque");
  app.set_version_flag("--version", version_text, "Versions and processor features");
  app.add_flag("-q,--quiet", globals().quiet, "Warnings and errors only");
  app.add_flag("-v,--verbose", globals().verbose, "More details");
  app.add_option("--runs", globals().runs, "The folder that holds the runs")
      ->capture_default_str()
      ->type_name("DIR");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  app.footer(
      "Start with `tools/demo`, or `calque data check configs/demo.yaml`. `calque COMMAND --help` shows an "
      "example.");
  for (const auto add : add_functions) add(app);
  app.parse_complete_callback(start_log);

  std::signal(SIGPIPE, SIG_IGN);  // a closed stderr must not end a training run
  std::vector<std::string> words(argv + 1, argv + argc);
  log::start(log::Verbosity::normal);
  if (!words.empty() && words.front() == "complete") {
    words.erase(words.begin(), words.begin() + (words.size() > 1 && words[1] == "--" ? 2 : 1));
    print_completions(app, words);
    return finish(0);
  }
  try {
    app.parse(argc, argv);
    return finish(0);
  } catch (const CLI::Success& done) {  // --help, --version
    std::cout << std::flush;
    return finish(app.exit(done));
  } catch (const CLI::ParseError& error) {
    return report_usage_error(app, error, words);
  } catch (const Exit& exit) {
    return finish(exit.code);
  } catch (const UserError& error) {
    log::error("{}", error.what());
    if (!error.help().empty()) log::info("  help: {}", error.help());
    finish(0);
    return exit_user_error;
  } catch (const std::filesystem::filesystem_error& error) {
    log::error("{}: {}", error.path1().string(), error.code().message());
    return exit_user_error;
  } catch (const std::bad_alloc&) {
    log::error("out of memory");
    return exit_failed;
  } catch (const RankLost& error) {
    log::error("{}", error.what());
    const bool trains = app.got_subcommand("train") || app.got_subcommand("resume");
    if (trains && world_of_this_process().is_first())
      log::info(
          "  help: a training run continues from its last checkpoint: `calque resume RUN`, on as many "
          "processes as you like");
    // Threads that wait for the lost process would keep this one alive.
    std::fflush(nullptr);
    std::_Exit(exit_failed);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    log::error(
        "{}",
        what.substr(0, what.find("\nException raised from")));  // LibTorch adds where in itself, at length
    return exit_failed;
  }
}

}  // namespace calque::cli

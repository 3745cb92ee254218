// The command line: a table of subcommands, one file each, which parse options, make one call into the layers
// below, and print. Data goes to stdout, messages to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace calque::cli {

// The type names of positional arguments, by which completion knows what to offer.
inline constexpr const char* wants_config = "CONFIG";          // a configuration file
inline constexpr const char* wants_overrides = "KEY=VALUE";    // section.key=value
inline constexpr const char* wants_experiment = "EXPERIMENT";  // one of `calque explore`
inline constexpr const char* wants_run = "RUN|CHECKPOINT";     // a run by its name, or a checkpoint's folder

// Exit codes other than 0.
inline constexpr int exit_failed = 1;      // it failed
inline constexpr int exit_user_error = 2;  // the command line, the configuration or the data is wrong
inline constexpr int exit_interrupted = 130;

// Adds a subcommand with its summary and an example that works when pasted.
CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& summary,
                      const std::string& example);

// Ends the program with this exit code, after flushing: for commands whose answer is "no".
struct Exit {
  int code;
};

void print(std::string_view text);  // data, to stdout
void flush_stdout();                // a failure is a SystemError; a closed pipe ends the program
void print_json(const nlohmann::json& value);
std::string json_line(const nlohmann::json& value);  // on one line, with a line feed

// The folder that holds the runs: --runs, or runs in the current folder.
std::filesystem::path runs_folder();
// The checkpoint of a run that is named, or what the path says.
std::filesystem::path checkpoint_of(const std::filesystem::path& run_or_path);

void add_train_command(CLI::App& app);
void add_resume_command(CLI::App& app);
void add_tune_command(CLI::App& app);
void add_distill_command(CLI::App& app);
void add_translate_command(CLI::App& app);
void add_evaluate_command(CLI::App& app);
void add_compare_command(CLI::App& app);
void add_score_command(CLI::App& app);
void add_score_text_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_export_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_launch_command(CLI::App& app);
void add_explore_command(CLI::App& app);
void add_serve_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_selftest_command(CLI::App& app);
void add_config_command(CLI::App& app);
void add_data_command(CLI::App& app);
void add_runs_command(CLI::App& app);
void add_cache_command(CLI::App& app);
void add_tokenizer_command(CLI::App& app);
void add_completion_command(CLI::App& app);
void add_man_command(CLI::App& app);

std::string version_text();

// Prints the candidates for the last word of a command line, one per line: `calque complete -- WORDS…`, which
// the completion scripts call.
void print_completions(const CLI::App& app, const std::vector<std::string>& words);

// The whole program.
int run(int argc, char** argv);

}  // namespace calque::cli

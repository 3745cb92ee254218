// calque launch: a command on several processes, on this machine or on several.
#include "calque/distributed/launcher.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/cli/command.h"

namespace calque::cli {
namespace {

struct LaunchCommandOptions {
  int processes = 0;
  std::string hosts;
  LaunchOptions launch;
};

constexpr std::string_view commands[] = {"train",    "resume",       "translate",
                                         "evaluate", "data prepare", "bench train"};

// The subcommand in these words, such as "train" or "data prepare".
std::string command_of(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const std::string& word : words) {
    if (!word.starts_with("-")) names.push_back(word);
  }
  if (names.empty()) return "";
  const bool has_parts = names.front() == "data" || names.front() == "bench";
  return has_parts && names.size() > 1 ? names[0] + " " + names[1] : names[0];
}

void check_command(const LaunchCommandOptions& options, const std::vector<std::string>& words) {
  const std::string command = command_of(words);
  const bool dry = std::find(words.begin(), words.end(), "--dry-run") != words.end();
  if (dry || std::find(std::begin(commands), std::end(commands), command) == std::end(commands)) {
    throw UserError(command.empty() ? "launch: the command is missing"
                                    : fmt::format("launch: `calque {}{}` runs in one process", command,
                                                  dry ? " --dry-run" : ""),
                    "train, resume, translate, evaluate, data prepare and bench train run in several");
  }
  if (options.launch.max_restarts > 0 && command == "translate")
    throw UserError(
        "launch: --max-restarts: a translation cannot be started again",
        "what it has read from a pipe and printed is gone; without --max-restarts a failure ends it");
}

void run_launch(LaunchCommandOptions& options, const std::vector<std::string>& words) {
  check_command(options, words);
  if (!options.hosts.empty()) {
    options.launch.hosts = parse_hosts(options.hosts);
  } else {
    if (options.processes < 1) throw UserError("launch: -n or --hosts is missing", "for example -n 2");
    options.launch.hosts = {Host{"", options.processes}};
  }
  std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe").string()};
  if (runs_folder() != "runs") command.insert(command.end(), {"--runs", runs_folder().string()});
  command.insert(command.end(), words.begin(), words.end());
  if (const int code = launch(options.launch, command); code != 0) throw Exit{code};
}

}  // namespace

void add_launch_command(CLI::App& app) {
  static LaunchCommandOptions options;
  CLI::App* command = add_command(app, "launch", "Run train, translate, evaluate, … on several processes",
                                  "calque launch -n 2 train configs/demo.yaml");
  command->fallthrough(false);
  command->prefix_command();
  command->add_option("-n", options.processes, "Processes on this machine")->check(CLI::Range(1, 4096));
  command->add_option("--hosts", options.hosts, "Machines, with a number of processes each: node1:2,node2:2")
      ->type_name("LIST")
      ->excludes("-n");
  command
      ->add_option("--remote-shell", options.launch.remote_shell,
                   "Program that runs a command on a host, called as `ssh HOST COMMAND…`")
      ->capture_default_str()
      ->type_name("PROGRAM");
  command
      ->add_option("--address", options.launch.address,
                   "Address of the first host, as the others reach it; default: its name")
      ->type_name("ADDRESS");
  command
      ->add_option("--port", options.launch.port,
                   "Port of the first host; default: a free one on this machine, 29500 on several")
      ->check(CLI::Range(1, 65535));
  command
      ->add_option("--max-restarts", options.launch.max_restarts,
                   "Start again, and resume, this many times after a failure")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->callback([command] { run_launch(options, command->remaining()); });
}

}  // namespace calque::cli

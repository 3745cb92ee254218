// calque completion: scripts for bash, zsh and fish. They call calque itself (`calque complete -- WORDS…`),
// so that subcommands, options, configuration keys and runs always match the installed program.
#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/cli/command.h"
#include "calque/runs/run_config.h"

namespace calque::cli {
namespace {

constexpr std::string_view bash_script =
    R"sh(# bash completion for calque: source this, or put it where bash-completion looks
_calque() {
  local candidates
  # "=" splits words in bash; the key before it is one word again here
  local current="${COMP_WORDS[COMP_CWORD]}"
  mapfile -t candidates < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$current" 2>/dev/null)
  COMPREPLY=("${candidates[@]}")
  [ ${#COMPREPLY[@]} -eq 0 ] && mapfile -t COMPREPLY < <(compgen -f -- "$current") && compopt -o filenames
  case "${COMPREPLY[0]}" in *=) compopt -o nospace ;; esac
}
complete -F _calque calque
)sh";

constexpr std::string_view zsh_script = R"sh(#compdef calque
# zsh completion for calque
_calque() {
  local -a candidates
  candidates=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${candidates[1]}" ]]; then
    compadd -S '' -q -- "${(@)candidates:#*[^=]}" ${(M)candidates:#*=}
    compadd -- ${candidates:#*=}
  else
    _files
  fi
}
compdef _calque calque
)sh";

constexpr std::string_view fish_script = R"sh(# fish completion for calque
function __calque_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] complete -- $words[2..-1] 2>/dev/null
end
complete -c calque -n 'test -n "$(__calque_complete)"' -f
complete -c calque -a '(__calque_complete)'
)sh";

std::vector<std::string> run_names() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(runs_folder(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && !name.starts_with('.')) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The type of a command's next positional argument, after `given` of them.
std::string wanted_type(const CLI::App& command, int given) {
  std::string type;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    type = option->get_type_name();
    if (given < option->get_items_expected_max()) return type;
    given -= option->get_items_expected_max();
  }
  return given > 0 ? "" : type;
}

std::vector<std::string> candidates(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* command = &root;
  int positionals = 0;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].starts_with("-")) {
      const std::string name = words[i];
      for (const CLI::Option* option : command->get_options()) {
        if (option->check_name(name) && option->get_items_expected_max() > 0) ++i;  // its value
      }
      continue;
    }
    const auto subs =
        command->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == words[i]; });
    if (!subs.empty()) {
      command = subs.front();
    } else {
      ++positionals;
    }
  }
  // bash passes "run=fi" as three words and completes the last one.
  const size_t count = words.size();
  if (count >= 2 && words[count - 1] == "=" && words[count - 2] == "run") return run_names();
  std::vector<std::string> found;
  const std::string prefix = words.empty() ? "" : words.back();
  if (count >= 3 && words[count - 2] == "=" && words[count - 3] == "run") {
    found = run_names();
    std::erase_if(found, [&](const std::string& one) { return !one.starts_with(prefix); });
    return found;
  }
  if (prefix.starts_with("-")) {
    for (const CLI::App* app : {command, &root}) {
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& name : option->get_lnames()) found.push_back("--" + name);
      }
      if (command == &root) break;
    }
  } else if (const auto subs =
                 command->get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
             !subs.empty()) {
    for (const CLI::App* sub : subs) found.push_back(sub->get_name());
  } else if (const std::string type = wanted_type(*command, positionals); type == wants_overrides) {
    RunConfig defaults;
    for (const std::string& key : config_keys(fields(defaults))) found.push_back(key + "=");
    for (const std::string& name : run_names()) found.push_back("run=" + name);  // to resume one
  } else if (type == wants_run) {
    found = run_names();
  }
  std::erase_if(found, [&](const std::string& one) { return !one.starts_with(prefix); });
  return found;
}

}  // namespace

void add_completion_command(CLI::App& app) {
  static std::string shell;
  CLI::App* completion = add_command(app, "completion", "A completion script for bash, zsh or fish",
                                     "source <(calque completion bash)");
  completion->add_option("SHELL", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  completion->callback([] {
    print(shell == "bash" ? bash_script : shell == "zsh" ? zsh_script : fish_script);
  });
}

void print_completions(const CLI::App& app, const std::vector<std::string>& words) {
  for (const std::string& one : candidates(app, words)) print(one + "\n");
}

}  // namespace calque::cli

// calque completion: scripts for bash, zsh and fish. They call calque itself (`calque complete -- WORDS…`),
// so that subcommands, options, configuration keys and runs always match the installed program.
#include <sstream>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/cli/command.h"
#include "calque/explore/experiment.h"
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
    if (!name.starts_with('.') && std::filesystem::exists(entry.path() / "config.yaml"))
      names.push_back(name);
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

// The values in a type such as "NAME:{bpe,unigram}", which CLI11 shows for a choice.
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> all;
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return all;
  std::stringstream list(type.substr(open + 1, close - open - 1));
  for (std::string one; std::getline(list, one, ',');) all.push_back(one);
  return all;
}

// Values of a configuration key: an enum's names, true and false, or runs for `run`.
std::vector<std::string> values_of_key(const Fields& all, std::string_view key) {
  if (key == "run") return run_names();
  for (const Field& field : all) {
    if (key.starts_with(field.name + ".") && !field.children.empty())
      return values_of_key(field.children, key.substr(field.name.size() + 1));
    if (key != field.name) continue;
    if (field.schema.contains("enum")) return field.schema["enum"].get<std::vector<std::string>>();
    if (field.schema.value("type", "") == "boolean") return {"false", "true"};
  }
  return {};
}

std::vector<std::string> values_of_type(const std::string& type) {
  if (type == wants_run) return run_names();
  std::vector<std::string> found = choices_of(type);
  if (type == wants_experiment) {
    for (const Experiment& one : all_experiments()) found.push_back(one.name);
  } else if (type == wants_overrides) {
    RunConfig defaults;
    for (const std::string& key : config_keys(fields(defaults))) found.push_back(key + "=");
  }
  return found;
}

const CLI::Option* find_option(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->check_name(name)) return option;
  }
  return nullptr;
}

// Where the last word stands on the command line.
struct Place {
  const CLI::App* command;
  int positionals = 0;                  // before it
  const CLI::Option* option = nullptr;  // whose value it is
};

Place find_place(const CLI::App& root, const std::vector<std::string>& words) {
  Place place{&root};
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].starts_with("-")) {
      const CLI::Option* option = find_option(*place.command, words[i]);
      const bool takes_value = option != nullptr && option->get_items_expected_max() > 0;
      if (takes_value && i + 2 == words.size()) place.option = option;
      i += takes_value;
      continue;
    }
    const auto subs =
        place.command->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == words[i]; });
    if (!subs.empty()) {
      place.command = subs.front();
    } else {
      ++place.positionals;
    }
  }
  return place;
}

std::vector<std::string> all_candidates(const CLI::App& root, const std::vector<std::string>& words,
                                        const std::string& last) {
  const Place place = find_place(root, words);
  if (place.option != nullptr) return values_of_type(place.option->get_type_name());
  std::vector<std::string> found;
  if (last.starts_with("-")) {
    for (const CLI::App* app : {place.command, &root}) {
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& name : option->get_lnames()) found.push_back("--" + name);
      }
      if (place.command == &root) break;
    }
    return found;
  }
  const auto subs =
      place.command->get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
  for (const CLI::App* sub : subs) found.push_back(sub->get_name());
  return subs.empty() ? values_of_type(wanted_type(*place.command, place.positionals)) : found;
}

std::vector<std::string> candidates(const CLI::App& root, const std::vector<std::string>& words) {
  std::string last = words.empty() ? "" : words.back();
  std::vector<std::string> found;
  const size_t count = words.size(), equals = last.find('=');
  RunConfig defaults;
  // bash passes "model.attention=pre" as three words and completes the last one; zsh and fish pass one word.
  if (count >= 2 && last == "=") {
    found = values_of_key(fields(defaults), words[count - 2]);
    last.clear();
  } else if (count >= 3 && words[count - 2] == "=") {
    found = values_of_key(fields(defaults), words[count - 3]);
  } else if (equals != std::string::npos && !last.starts_with("-")) {
    for (const std::string& value : values_of_key(fields(defaults), last.substr(0, equals)))
      found.push_back(last.substr(0, equals + 1) + value);
  } else {
    found = all_candidates(root, words, last);
  }
  std::erase_if(found, [&](const std::string& one) { return !one.starts_with(last); });
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
